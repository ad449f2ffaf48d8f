// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rttlabel, the edge of a FIFA domain: writes round-trip times into packets.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/tc_act/tc_rttlabel.h>

#include "aqm_util.h"

static const char *const sources[] = {
	[TC_RTTLABEL_SOCKET] = "socket",
	[TC_RTTLABEL_HANDSHAKE] = "handshake",
	[TC_RTTLABEL_TIMESTAMPS] = "timestamps",
	[TC_RTTLABEL_CLEAR] = "clear",
	NULL
};

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... rttlabel [ from socket|handshake|timestamps|clear|TIME ]\n"
		"                    [ error PERCENT ] [ CONTROL ] [ index INDEX ]\n"
		"CONTROL := reclassify | pipe | drop | continue | ok | goto chain <INDEX>\n");
}

static int get_source(__u64 *source, __u64 *time, const char *arg)
{
	*time = 0;
	if (aqm_get_choice(source, arg, sources) == 0)
		return 0;
	/* no sign, "inf" or "nan", which tc's own function lets pass */
	if (!isdigit(*arg) && *arg != '.')
		return -1;
	*source = TC_RTTLABEL_TIME;
	return aqm_get_duration(time, arg);
}

/* "50%" or "50". */
static int get_error(__u64 *error, const char *arg)
{
	char *end;
	double percent = strtod(arg, &end);

	if (end == arg || (*end && strcmp(end, "%")) ||
	    !(percent >= 0 && percent <= 100))
		return -1;
	*error = percent / 100 * (1ULL << TC_AQM_REAL_SHIFT) + 0.5;
	return 0;
}

static int parse_rttlabel(struct action_util *a, int *argc_p, char ***argv_p,
			  int tca_id, struct nlmsghdr *n)
{
	__u64 source = TC_RTTLABEL_SOCKET, time = 0, error = 0;
	struct tc_rttlabel sel = {};
	char **argv = *argv_p;
	int argc = *argc_p;
	struct rtattr *tail;

	for (argc--, argv++; argc > 0; argc--, argv++) {
		if (strcmp(*argv, "help") == 0) {
			explain();
			return -1;
		}
		if (strcmp(*argv, "from") == 0) {
			NEXT_ARG();
			if (get_source(&source, &time, *argv)) {
				fprintf(stderr,
					"Error: \"from\" takes socket, handshake, timestamps, clear or a time such as 40ms, not \"%s\".\n",
					*argv);
				return -1;
			}
		} else if (strcmp(*argv, "error") == 0) {
			NEXT_ARG();
			if (get_error(&error, *argv)) {
				fprintf(stderr,
					"Error: \"error\" takes a percentage from 0%% to 100%%, not \"%s\".\n",
					*argv);
				return -1;
			}
		} else {
			break;
		}
	}

	parse_action_control_dflt(&argc, &argv, &sel.action, false,
				  TC_ACT_PIPE);
	if (argc && strcmp(*argv, "index") == 0) {
		NEXT_ARG();
		if (get_u32(&sel.index, *argv, 10)) {
			fprintf(stderr,
				"Error: \"index\" takes a whole number, not \"%s\".\n",
				*argv);
			return -1;
		}
		NEXT_ARG_FWD();
	}

	tail = addattr_nest(n, MAX_MSG, tca_id | NLA_F_NESTED);
	addattr_l(n, MAX_MSG, TCA_RTTLABEL_PARMS, &sel, sizeof(sel));
	addattr8(n, MAX_MSG, TCA_RTTLABEL_FROM, source);
	if (source == TC_RTTLABEL_TIME)
		addattr64(n, MAX_MSG, TCA_RTTLABEL_TIME, time);
	addattr64(n, MAX_MSG, TCA_RTTLABEL_ERROR, error);
	addattr_nest_end(n, tail);

	*argc_p = argc;
	*argv_p = argv;
	return 0;
}

static __u64 value_of(struct rtattr *attr)
{
	return attr ? rta_getattr_u64(attr) : 0;
}

static int print_rttlabel(struct action_util *au, FILE *f, struct rtattr *arg)
{
	struct rtattr *tb[TCA_RTTLABEL_MAX + 1];
	const struct tc_rttlabel *sel;
	__u8 source;

	print_string(PRINT_ANY, "kind", "%s ", "rttlabel");
	if (!arg)
		return 0;
	parse_rtattr_nested(tb, TCA_RTTLABEL_MAX, arg);
	if (!tb[TCA_RTTLABEL_PARMS] || !tb[TCA_RTTLABEL_FROM]) {
		fprintf(stderr, "The kernel's rttlabel speaks another language.\n");
		return -1;
	}
	sel = RTA_DATA(tb[TCA_RTTLABEL_PARMS]);
	source = rta_getattr_u8(tb[TCA_RTTLABEL_FROM]);

	print_string(PRINT_FP, NULL, "from ", NULL);
	if (source == TC_RTTLABEL_TIME)
		aqm_print_time("from", value_of(tb[TCA_RTTLABEL_TIME]), true);
	else
		print_string(PRINT_ANY, "from", "%s",
			     aqm_word_at(sources, source));
	if (value_of(tb[TCA_RTTLABEL_ERROR]) || is_json_context())
		print_float(PRINT_ANY, "error", " error %g%%",
			    (double)value_of(tb[TCA_RTTLABEL_ERROR]) * 100 /
			    (1ULL << TC_AQM_REAL_SHIFT));
	print_action_control(f, " ", sel->action, "");

	print_nl();
	print_uint(PRINT_ANY, "index", "\t index %u", sel->index);
	print_int(PRINT_ANY, "ref", " ref %d", sel->refcnt);
	print_int(PRINT_ANY, "bind", " bind %d", sel->bindcnt);
	if (show_stats) {
		if (tb[TCA_RTTLABEL_TM])
			print_tm(f, RTA_DATA(tb[TCA_RTTLABEL_TM]));
		print_nl();
		print_lluint(PRINT_ANY, "labelled", "\t labelled %llu",
			     value_of(tb[TCA_RTTLABEL_LABELLED]));
		print_lluint(PRINT_ANY, "cleared", " cleared %llu",
			     value_of(tb[TCA_RTTLABEL_CLEARED]));
	}
	print_nl();
	return 0;
}

struct action_util rttlabel_action_util = {
	.id = "rttlabel",
	.parse_aopt = parse_rttlabel,
	.print_aopt = print_rttlabel,
};
