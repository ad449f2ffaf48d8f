# SPDX-License-Identifier: GPL-2.0-or-later
#
# make             modules and tc plug-ins for the running kernel
# make install     put them, aqm-tune, the man pages and bash completion in their places
# make uninstall   take them away again
# make demo        from nothing to a page of figures: out/demo/index.html
# make papers      the papers' figures: runs that are not there yet; SEEDS=5, FIGURE=xqm-table1,
#                  QUICK=1, DRYRUN=1, PROFILE= (see mininet/papers/README.md)
# make report      their page, from the results that are there: out/report/index.html
# make docs        the documentation as a site: out/docs/docs/index.html
# make verify      some of these results made anew, and compared: RUNS=5
# make test        every test; ends with "N passed, 0 failed"
# make test-NAME   one suite of: lint unit docs report papers lab experiment bench stock tdc,
#                  and in the lab: net debug linux-6.1 linux-7.2
# make lab         the virtual-time kernel that lab/run needs
# make clean       remove what was built here (the cache folder stays)
#
# KDIR= kernel build folder, KVER= its release, OUT= where to build,
# DESTDIR=, PREFIX= where to install

MODULES := $(patsubst %/Kbuild,%,$(wildcard */Kbuild))
MANPAGES := $(wildcard mininet/*.1 tc-patches/*.8 tcp_pert/*.7)
PLUGINS := $(patsubst tc-patches/%.c,%.so,$(wildcard tc-patches/[qm]_*.c))
COMPLETION := $(wildcard tc-patches/completion/*)

KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build
OUT ?= build/out
PREFIX ?= /usr
MODDIR = $(DESTDIR)/lib/modules/$(KVER)/updates/aqmkit
TCDIR = $(DESTDIR)$(PREFIX)/lib/$(shell $(CC) -print-multiarch)/tc
MANDIR = $(DESTDIR)$(PREFIX)/share/man
COMPDIR = $(DESTDIR)/etc/bash_completion.d
BINDIR = $(DESTDIR)$(PREFIX)/bin
TUNEDIR = $(DESTDIR)$(PREFIX)/lib/aqmkit

PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest -p no:cacheprovider -q
JUNIT := build/junit

all: modules plugins

## For a router

# From a copy of the sources, so that one tree serves many kernels at a time.
modules:
	@test -d $(KDIR) || { echo "No kernel headers in $(KDIR): install" \
		"linux-headers-$(KVER), or name other headers with KDIR=." >&2; exit 1; }
	@mkdir -p $(OUT)/src
	@cp -r include $(MODULES) $(OUT)/src
	@printf 'obj-m += %s/\n' $(notdir $(MODULES)) > $(OUT)/src/Kbuild
	$(MAKE) -C $(KDIR) M=$(abspath $(OUT))/src modules
	@cp $(patsubst %,$(OUT)/src/%/*.ko,$(notdir $(MODULES))) $(OUT)

plugins:
	$(MAKE) -C tc-patches OUT=$(abspath $(OUT))

install: all
	install -d $(MODDIR) $(TCDIR) $(MANDIR)/man1 $(MANDIR)/man7 $(MANDIR)/man8 $(COMPDIR)
	install -m 644 $(OUT)/*.ko $(MODDIR)
	install -m 644 $(PLUGINS:%=$(OUT)/%) $(TCDIR)
	install -m 644 $(filter %.1,$(MANPAGES)) $(MANDIR)/man1
	install -m 644 $(filter %.7,$(MANPAGES)) $(MANDIR)/man7
	install -m 644 $(filter %.8,$(MANPAGES)) $(MANDIR)/man8
	install -m 644 $(COMPLETION) $(COMPDIR)
	install -d $(BINDIR) $(TUNEDIR)/aqmlab $(TUNEDIR)/models
	install -m 644 mininet/aqmlab/*.py $(TUNEDIR)/aqmlab
	install -m 644 mininet/models/*.py $(TUNEDIR)/models
	install -m 755 mininet/aqm-tune $(TUNEDIR)
	ln -sf ../lib/aqmkit/aqm-tune $(BINDIR)/aqm-tune
	$(if $(DESTDIR),,depmod $(KVER))

uninstall:
	$(RM) -r $(MODDIR) $(TUNEDIR) $(BINDIR)/aqm-tune
	$(RM) $(PLUGINS:%=$(TCDIR)/%)
	$(RM) $(addprefix $(MANDIR)/man1/,$(notdir $(filter %.1,$(MANPAGES))))
	$(RM) $(addprefix $(MANDIR)/man7/,$(notdir $(filter %.7,$(MANPAGES))))
	$(RM) $(addprefix $(MANDIR)/man8/,$(notdir $(filter %.8,$(MANPAGES))))
	$(RM) $(COMPLETION:tc-patches/completion/%=$(COMPDIR)/%)
	$(if $(DESTDIR),,depmod $(KVER))

## For a laboratory

PACKAGES := $(shell grep -v '^\#' packages.txt)

# What is missing is installed by root; others are told how.
packages:
	@for name in $(PACKAGES); do \
		dpkg-query -Wf '$${db:Status-Status}' $$name 2>/dev/null | \
			grep -qx installed || missing="$$missing $$name"; \
	done; \
	test -n "$$missing" || exit 0; \
	if [ "$$(id -u)" = 0 ]; then \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive \
			apt-get install -qy --no-install-recommends $$missing; \
	else \
		echo "Packages are missing. Have root do: apt-get install$$missing" >&2; \
		exit 1; \
	fi

# Debian's Python, as in the guest: it sees Debian's mininet and pyroute2.
.venv: requirements.txt | packages
	/usr/bin/python3 -m venv --clear --system-site-packages $@
	$@/bin/pip install -q --disable-pip-version-check -r $<
	@touch $@

requirements.txt: requirements.in
	$(PYTHON) -m piptools compile -q --strip-extras --no-emit-index-url --no-emit-find-links \
		--no-header --output-file $@ $<

lab: | packages
	lab/build

demo: .venv lab
	$(PYTHON) mininet/demo.py

## The papers

SEEDS ?= 1
RUNS ?= 5
PROFILE ?=
SNAKEMAKE = .venv/bin/snakemake --snakefile mininet/papers/Snakefile --quiet rules \
	--rerun-triggers mtime --rerun-incomplete --keep-going \
	$(if $(PROFILE),--profile $(PROFILE),--cores all) $(if $(DRYRUN),--dry-run)

papers: .venv lab
	$(SNAKEMAKE) --config seeds=$(SEEDS) quick=$(QUICK) figure=$(FIGURE)

report: .venv
	$(PYTHON) mininet/campaign.py report

docs: .venv
	.venv/bin/sphinx-build -qWj auto -c docs . out/docs

verify: .venv lab
	$(PYTHON) mininet/campaign.py verify --runs $(RUNS)

## Tests

HOST_SUITES := stock tdc experiment docs papers lab report unit lint bench
GUEST_SUITES := debug net linux-6.1 linux-7.2
SUITES := $(GUEST_SUITES) $(HOST_SUITES)
TESTS := $(SUITES:%=test-%)

# As many suites at a time as there are processors, but those alone that measure or know how
# long something may take; all kernels are there before. A suite that fails does not keep the
# others from being run; the summary misses one that left no results.
ALONE := test-bench test-lab
JOBS ?= $(shell nproc)
test: .venv
	@rm -rf $(JUNIT)
	@mkdir -p $(JUNIT)
	-lab/build && lab/build --flavour debug && lab/build --kernel 6.1 && lab/build --kernel 7.2
	-@$(MAKE) --no-print-directory -k $(ALONE)
	@printf '%s\n' $(filter-out $(ALONE),$(TESTS)) | xargs -P $(JOBS) -I NAME sh -c \
		'echo "make NAME ..."; $(MAKE) --no-print-directory NAME >$(JUNIT)/NAME.log 2>&1; cat $(JUNIT)/NAME.log'
	@$(PYTHON) tests/summary.py $(SUITES:%=$(JUNIT)/%.xml)

$(TESTS): .venv
test-lint test-papers test-lab test-experiment test-bench test-docs test-net test-tdc: lab

$(HOST_SUITES:%=test-%): test-%:
	$(PYTEST) --junitxml=$(JUNIT)/$*.xml tests/$* $(OPTIONS)

# tc's own tests, on these kernels. There are 6.1, four times as slow, and debug, too.
TDC ?= 6.12 7.2
test-tdc: OPTIONS = $(TDC:%=--on %)

# Within the lab's guest, on one kernel after the other: all of tests/net, but on
# other releases only what a kernel's interfaces have a say in.
INTERFACES := devices netlink packets parents pert rttlabel shown super wreno xqm
NET = tests/net
test-linux-6.1 test-linux-7.2: NET = $(INTERFACES:%=tests/net/test_%.py)
test-debug: KERNEL := --flavour debug
test-linux-6.1 test-linux-7.2: KERNEL = --kernel $(*:linux-%=%)
test-debug test-linux-6.1 test-linux-7.2: build-kernel = lab/build $(KERNEL)

$(GUEST_SUITES:%=test-%): test-%:
	$(build-kernel)
	@mkdir -p $(JUNIT)
	lab/run $(KERNEL) --out $(JUNIT) -- $(PYTEST) --junitxml=$(JUNIT)/$*.xml $(NET)

clean:
	$(RM) -r build out .venv

.PHONY: all modules plugins install uninstall packages lab demo papers report docs verify test \
	$(TESTS) clean
