// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the tc side of aqmkit's qdiscs has in common.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aqm_util.h"

#define MESSAGE_MAX	1024	/* bytes, ample for all options of a qdisc */
#define ATTRIBUTE_MAX	63	/* what a newer kernel adds above is not read */
#define USAGE_WIDTH	72
#define REAL_MAX	(1 << (64 - TC_AQM_REAL_SHIFT))

const char *const aqm_rem_measures[] = {
	[TC_REM_AUTO] = "auto",
	[TC_REM_BACKLOG] = "backlog",
	[TC_REM_QUEUE] = "queue",
	[TC_REM_RATE] = "rate",
	NULL
};

static bool is_flag(const struct aqm_field *f)
{
	return f->form == AQM_FLAG || f->form == AQM_SWITCH;
}

static bool has_words(const struct aqm_field *f)
{
	return f->form == AQM_CHOICE || f->form == AQM_WORD_TIME;
}

static double from_fixed(__u64 value, int shift)
{
	return (double)value / (1ULL << shift);
}

static int get_real(__u64 *value, const char *arg)
{
	char *end;
	double real = strtod(arg, &end);

	if (*end || real >= REAL_MAX)
		return -1;
	*value = real * (1ULL << TC_AQM_REAL_SHIFT) + 0.5;
	return 0;
}

/* tc(8) has a number without unit mean microseconds, get_time64() has not. */
int aqm_get_duration(__u64 *value, const char *arg)
{
	bool bare = !isalpha(arg[strlen(arg) - 1]);
	char text[SPRINT_BSIZE];
	__s64 ns;

	if (snprintf(text, sizeof(text), "%s%s", arg, bare ? "us" : "") >=
	    (int)sizeof(text) || get_time64(&ns, text) || ns < 0)
		return -1;
	*value = ns;
	return 0;
}

static int get_dscp(__u64 *value, const char *arg)
{
	__u8 dscp;

	if (strcmp(arg, "none") == 0)
		dscp = TC_AQM_NO_DSCP;
	else if (get_u8(&dscp, arg, 0) || dscp > 63)
		return -1;
	*value = dscp;
	return 0;
}

int aqm_get_choice(__u64 *value, const char *arg, const char *const *words)
{
	__u64 i;

	for (i = 0; words[i]; i++) {
		if (strcmp(arg, words[i]) == 0) {
			*value = i;
			return 0;
		}
	}
	return -1;
}

static int get_value(__u64 *value, const struct aqm_field *f, const char *arg,
		     const char *dev)
{
	unsigned int number;
	int err;

	if (f->form == AQM_DSCP)
		return get_dscp(value, arg);
	if (f->form == AQM_CHOICE)
		return aqm_get_choice(value, arg, f->words);
	if (f->form == AQM_RATE && f->symbol && strcmp(arg, f->symbol) == 0) {
		*value = 0;
		return 0;
	}

	/* no sign, "inf" or "nan", which tc's own functions let pass */
	if (!isdigit(*arg) && *arg != '.')
		return -1;

	switch (f->form) {
	case AQM_COUNT:
	case AQM_PACKETS:
		err = get_u32(&number, arg, 0);
		*value = number;
		break;
	case AQM_BYTES:
		err = get_size(&number, arg);
		*value = number;
		break;
	case AQM_TIME:
		err = aqm_get_duration(value, arg);
		break;
	case AQM_RATE:
		err = strchr(arg, '%') ? get_percent_rate64(value, arg, dev) :
					 get_rate64(value, arg);
		break;
	case AQM_REAL:
		err = get_real(value, arg);
		break;
	default:
		return -1;
	}
	/* too small or far too large to be sent: 0 would mean "off" */
	if (!err && *value == 0 && strtod(arg, NULL) > 0)
		return -1;
	return err;
}

static void print_words(FILE *fp, const struct aqm_field *f)
{
	const char *const *word;

	for (word = f->words; *word; word++)
		fprintf(fp, "%s%s", word == f->words ? "" : "|", *word);
}

static void refuse(const struct aqm_field *f, const char *arg)
{
	static const char *const takes[] = {
		[AQM_COUNT] = "a whole number",
		[AQM_PACKETS] = "a whole number of packets",
		[AQM_BYTES] = "a size in bytes",
		[AQM_TIME] = "a time such as 2ms",
		[AQM_RATE] = "a rate such as 64mbit",
		[AQM_REAL] = "a number between 0 and 65536",
		[AQM_DSCP] = "a code point from 0 to 63, or none",
		[AQM_WEIGHTS] = "1 to 16 whole numbers",
	};

	fprintf(stderr, "Error: \"%s\" takes ", f->name);
	if (has_words(f))
		print_words(stderr, f);
	else
		fputs(takes[f->form], stderr);
	if (f->form == AQM_WORD_TIME)
		fprintf(stderr, " or %s", takes[AQM_TIME]);
	else if (f->form == AQM_RATE && f->symbol)
		fprintf(stderr, " or %s", f->symbol);
	fprintf(stderr, ", not \"%s\".\n", arg);
}

static int sprint_usage(char *buf, size_t len, const struct aqm_field *f)
{
	static const char *const argument[] = {
		[AQM_PACKETS] = "PACKETS",
		[AQM_BYTES] = "BYTES",
		[AQM_TIME] = "TIME",
		[AQM_RATE] = "RATE",
		[AQM_DSCP] = "DSCP|none",
		[AQM_WEIGHTS] = "W0 W1 ...",
	};
	const char *const *word;
	int n;

	if (is_flag(f))
		return snprintf(buf, len, " [ %s | no%s ]", f->name, f->name);
	if (f->form == AQM_RATE && f->symbol)
		return snprintf(buf, len, " [ %s RATE|%s ]", f->name,
				f->symbol);
	if (!has_words(f))
		return snprintf(buf, len, " [ %s %s ]", f->name,
				argument[f->form] ? : f->symbol);
	n = snprintf(buf, len, " [ %s ", f->name);
	for (word = f->words; *word; word++)
		n += snprintf(buf + n, len - n, "%s%s", *word,
			      word[1] ? "|" : "");
	return n + snprintf(buf + n, len - n,
			    f->form == AQM_WORD_TIME ? "|TIME ]" : " ]");
}

static void explain(const struct aqm_field *options, const char *kind)
{
	int indent = fprintf(stderr, "Usage: ... %s", kind);
	int column = indent;

	for (; options->name; options++) {
		char text[USAGE_WIDTH];
		int n = sprint_usage(text, sizeof(text), options);

		if (column + n > USAGE_WIDTH)
			column = fprintf(stderr, "\n%*s", indent, "") - 1;
		fputs(text, stderr);
		column += n;
	}
	fputc('\n', stderr);
}

static const struct aqm_field *find(const struct aqm_field *options,
				    const char *arg, bool *on)
{
	for (; options->name; options++) {
		*on = strcmp(arg, options->name) == 0;
		if (*on || (is_flag(options) &&
			    strncmp(arg, "no", 2) == 0 &&
			    strcmp(arg + 2, options->name) == 0))
			return options;
	}
	return NULL;
}

static void add_value(struct nlmsghdr *n, const struct aqm_field *f,
		      __u64 value)
{
	switch (f->form) {
	case AQM_FLAG:
	case AQM_SWITCH:
	case AQM_DSCP:
	case AQM_CHOICE:
		addattr8(n, MESSAGE_MAX, f->type, value);
		break;
	case AQM_COUNT:
	case AQM_PACKETS:
	case AQM_BYTES:
		addattr32(n, MESSAGE_MAX, f->type, value);
		break;
	default:
		addattr64(n, MESSAGE_MAX, f->type, value);
	}
}

static __u64 words_count(const char *const *words)
{
	__u64 n = 0;

	while (words[n])
		n++;
	return n;
}

/* A word, or a time, which is the number after the words and in ns. */
static int add_word_time(struct nlmsghdr *n, const struct aqm_field *f,
			 const char *arg)
{
	__u64 value, time;

	if (aqm_get_choice(&value, arg, f->words)) {
		if (!isdigit(*arg) || aqm_get_duration(&time, arg))
			return -1;
		value = words_count(f->words);
		addattr64(n, MESSAGE_MAX, f->type + 1, time);
	}
	addattr8(n, MESSAGE_MAX, f->type, value);
	return 0;
}

/* As many numbers as there are; the rest are 1. */
static int add_weights(struct nlmsghdr *n, const struct aqm_field *f,
		       int *argc, char ***argv)
{
	__u16 weight[AQM_WEIGHTS_MAX];
	int i;

	for (i = 0; i < AQM_WEIGHTS_MAX; i++)
		weight[i] = 1;
	for (i = 0;; i++) {
		if (i == AQM_WEIGHTS_MAX || !isdigit(***argv) ||
		    get_u16(&weight[i], **argv, 0))
			return -1;
		if (*argc == 1 || !isdigit(*(*argv)[1]))
			break;
		++*argv;
		--*argc;
	}
	addattr_l(n, MESSAGE_MAX, f->type, weight, sizeof(weight));
	return 0;
}

/* What is typed of an option after its name; 0, or -1 at what it does not take. */
static int add_typed(struct nlmsghdr *n, const struct aqm_field *f, int *argc,
		     char ***argv, const char *dev)
{
	__u64 value;

	if (f->form == AQM_WORD_TIME)
		return add_word_time(n, f, **argv);
	if (f->form == AQM_WEIGHTS)
		return add_weights(n, f, argc, argv);
	if (get_value(&value, f, **argv, dev))
		return -1;
	add_value(n, f, value);
	return 0;
}

int aqm_parse_opt(const struct aqm_field *options, const char *kind, int argc,
		  char **argv, struct nlmsghdr *n, const char *dev)
{
	struct rtattr *tail;
	__u64 seen = 0;

	tail = addattr_nest(n, MESSAGE_MAX, TCA_OPTIONS | NLA_F_NESTED);
	for (; argc > 0; argc--, argv++) {
		const struct aqm_field *f;
		__u64 bit;
		bool on;

		if (strcmp(*argv, "help") == 0) {
			explain(options, kind);
			return -1;
		}
		f = find(options, *argv, &on);
		if (!f) {
			fprintf(stderr, "What is \"%s\"?\n", *argv);
			explain(options, kind);
			return -1;
		}
		if (!is_flag(f))
			NEXT_ARG();
		bit = 1ULL << (f - options);
		if (seen & bit)
			duparg(f->name, *argv);
		seen |= bit;
		if (is_flag(f)) {
			add_value(n, f, on);
		} else if (add_typed(n, f, &argc, &argv, dev)) {
			refuse(f, *argv);
			return -1;
		}
	}
	addattr_nest_end(n, tail);
	return 0;
}

/* The shortest digits that are read as the same number, or its neighbour. */
static void print_real(const char *name, __u64 value)
{
	double real = from_fixed(value, TC_AQM_REAL_SHIFT);
	char text[SPRINT_BSIZE];
	int digits = 6;	/* as %g starts */
	__u64 again;

	do
		snprintf(text, sizeof(text), "%.*g", digits, real);
	while ((get_real(&again, text) || again - value + 1 > 2) &&
	       digits++ < 17);

	/* print_float() would cut it to six digits in JSON */
	if (is_json_context()) {
		jsonw_name(get_json_writer(), name);
		jsonw_printf(get_json_writer(), "%s", text);
	} else {
		print_string(PRINT_FP, NULL, "%s", text);
	}
}

void aqm_print_time(const char *name, __u64 ns, bool exact)
{
	char text[SPRINT_BSIZE];
	__u64 again;

	sprint_time64(ns, text);
	if (exact && (aqm_get_duration(&again, text) || again != ns))
		snprintf(text, sizeof(text), "%lluns", ns);
	print_lluint(PRINT_JSON, name, NULL, ns);
	print_string(PRINT_FP, NULL, "%s", text);
}

const char *aqm_word_at(const char *const *words, __u64 number)
{
	while (*words && number--)
		words++;
	return *words ? : "unknown";
}

static bool shown(const struct aqm_field *f, __u64 value)
{
	switch (f->form) {
	case AQM_BYTES:
	case AQM_RATE:
	case AQM_PPS:
	case AQM_FLAG:
		return value || is_json_context();
	case AQM_DSCP:
		return value != TC_AQM_NO_DSCP || is_json_context();
	default:
		return true;
	}
}

static void print_value(const struct aqm_field *f, __u64 value)
{
	if (is_flag(f)) {
		print_bool(PRINT_JSON, f->name, NULL, value);
		print_string(PRINT_FP, NULL, "%s", value ? "" : "no");
		print_string(PRINT_FP, NULL, "%s", f->name);
		return;
	}

	print_string(PRINT_FP, NULL, "%s ", f->name);
	switch (f->form) {
	case AQM_PACKETS:
		print_lluint(PRINT_ANY, f->name, "%llup", value);
		break;
	case AQM_BYTES:
		print_lluint(PRINT_ANY, f->name, "%llub", value);
		break;
	case AQM_TIME:
		aqm_print_time(f->name, value, true);
		break;
	case AQM_DELAY:
		aqm_print_time(f->name, value, false);
		break;
	case AQM_RATE:
		tc_print_rate(PRINT_ANY, f->name, "%s", value);
		break;
	case AQM_PPS:
		print_float(PRINT_ANY, f->name, "%gpps", from_fixed(value, 8));
		break;
	case AQM_REAL:
		print_real(f->name, value);
		break;
	case AQM_FIXED:
		print_float(PRINT_ANY, f->name, "%g",
			    from_fixed(value, f->shift));
		break;
	case AQM_DSCP:
		if (value == TC_AQM_NO_DSCP)
			print_null(PRINT_JSON, f->name, NULL, NULL);
		else
			print_lluint(PRINT_ANY, f->name, "%llu", value);
		break;
	case AQM_CHOICE:
	case AQM_WORD_TIME:
		print_string(PRINT_ANY, f->name, "%s",
			     aqm_word_at(f->words, value));
		break;
	default:
		print_lluint(PRINT_ANY, f->name, "%llu", value);
	}
}

/* Those at the end that are 1 are not shown. */
static void print_weights(const struct aqm_field *f, const struct rtattr *attr,
			  const char *before, const char *after)
{
	const __u16 *weight = RTA_DATA(attr);
	int i, n = AQM_WEIGHTS_MAX;

	while (n && weight[n - 1] == 1)
		n--;
	if (n) {
		print_string(PRINT_FP, NULL, "%s", before);
		print_string(PRINT_FP, NULL, "%s ", f->name);
	}
	open_json_array(PRINT_JSON, f->name);
	for (i = 0; i < n; i++)
		print_uint(PRINT_ANY, NULL, i + 1 < n ? "%u " : "%u",
			   weight[i]);
	close_json_array(PRINT_JSON, NULL);
	if (n)
		print_string(PRINT_FP, NULL, "%s", after);
}

static bool read_value(__u64 *value, const struct rtattr *attr)
{
	if (!attr)
		return false;
	switch (RTA_PAYLOAD(attr)) {
	case sizeof(__u8):
		*value = rta_getattr_u8(attr);
		return true;
	case sizeof(__u32):
		*value = rta_getattr_u32(attr);
		return true;
	case sizeof(__u64):
		*value = rta_getattr_u64(attr);
		return true;
	default:
		return false;
	}
}

static void print_field(const struct aqm_field *f, struct rtattr **tb,
			const char *before, const char *after)
{
	struct rtattr *attr = tb[f->type];
	__u64 value, time;

	if (f->form == AQM_WEIGHTS) {
		if (attr &&
		    RTA_PAYLOAD(attr) == AQM_WEIGHTS_MAX * sizeof(__u16))
			print_weights(f, attr, before, after);
		return;
	}
	if (!read_value(&value, attr) || !shown(f, value))
		return;
	print_string(PRINT_FP, NULL, "%s", before);
	if (f->form == AQM_WORD_TIME && value >= words_count(f->words) &&
	    read_value(&time, tb[f->type + 1])) {
		print_string(PRINT_FP, NULL, "%s ", f->name);
		aqm_print_time(f->name, time, true);
	} else {
		print_value(f, value);
	}
	print_string(PRINT_FP, NULL, "%s", after);
}

static void print_fields(const struct aqm_field *f, struct rtattr *nest,
			 const char *before, const char *after)
{
	struct rtattr *tb[ATTRIBUTE_MAX + 1];

	parse_rtattr_nested(tb, ATTRIBUTE_MAX, nest);
	for (; f->name; f++)
		print_field(f, tb, before, after);
}

int aqm_print_opt(const struct aqm_field *options, struct rtattr *opt)
{
	if (opt)
		print_fields(options, opt, "", " ");
	return 0;
}

int aqm_print_class_xstats(const struct aqm_field *own, struct rtattr *xstats)
{
	if (!xstats)
		return 0;
	print_string(PRINT_FP, NULL, " ", NULL);
	print_fields(own, xstats, " ", "");
	return 0;
}

int aqm_print_xstats(const struct aqm_field *own, struct rtattr *xstats)
{
	static const struct aqm_field state[] = {
		{ "prob", TCA_AQM_STATS_PROB, AQM_FIXED,
		  { .shift = TC_AQM_PROB_SHIFT } },
		{ "delay", TCA_AQM_STATS_DELAY, AQM_DELAY, {} },
		{ "queue", TCA_AQM_STATS_QUEUE, AQM_PACKETS, {} },
		{}
	};
	static const struct aqm_field counters[] = {
		{ "pkts_in", TCA_AQM_STATS_PKTS_IN, AQM_COUNT, {} },
		{ "overlimit", TCA_AQM_STATS_OVERLIMIT, AQM_COUNT, {} },
		{ "dropped", TCA_AQM_STATS_DROPPED, AQM_COUNT, {} },
		{ "maxq", TCA_AQM_STATS_MAXQ, AQM_COUNT, {} },
		{ "ecn_mark", TCA_AQM_STATS_ECN_MARK, AQM_COUNT, {} },
		{ "protected", TCA_AQM_STATS_PROTECTED, AQM_COUNT, {} },
		{}
	};

	if (!xstats)
		return 0;
	print_string(PRINT_FP, NULL, " ", NULL);
	print_fields(state, xstats, " ", "");
	print_fields(own, xstats, " ", "");
	print_nl();
	print_string(PRINT_FP, NULL, " ", NULL);
	print_fields(counters, xstats, " ", "");
	return 0;
}
