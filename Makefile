# SPDX-License-Identifier: GPL-2.0-or-later
#
# make             modules and tc plug-ins for the running kernel
# make install     put them, aqm-top, aqm-tune, man pages and bash completion in their places;
#                  make install-modules, after a new kernel, only the modules
# make uninstall   take them away again
# make demo        from nothing to a page of figures: out/demo/index.html
# make papers      the papers' figures: runs that are not there yet; SEEDS=5, FIGURE=xqm-table1,
#                  QUICK=1, DRYRUN=1, PROFILE= (see mininet/papers/README.md)
# make report      their page, from the results that are there: out/report/index.html
# make docs        the documentation as a site: out/docs/docs/index.html
# make verify      some of these results made anew, and compared: RUNS=5
# make test        every test; ends with "N passed, 0 failed"
# make test-NAME   one suite of: lint unit docs report papers lab experiment bench stock tdc
#                  trust fuzz, and in the lab: net debug linux-6.1 linux-7.2
# make matrix      which tests passed on which kernels, of the suites run last: JSON=1
# make fuzz        mutated netlink messages: MESSAGES=10000000, SEED=1 (see tests/fuzz/README.md)
# make trust       the tests' long forms, hours, to docs/trust.md: ONLY=month,loads,
#                  MESSAGES=10000000
# make lab         the virtual-time kernel that lab/run needs
# make clean       remove what was built here (the cache folder stays)
#
# KDIR= kernel build folder, or KVER= an installed kernel's release; OUT= where to build,
# DESTDIR=, PREFIX=, TCDIR= (tc's plug-ins) where to install, SIGN_KEY=, SIGN_CERT= for modules;
# UNTESTED=1 builds for a kernel that nobody has tried

MODULES := $(patsubst %/Kbuild,%,$(wildcard */Kbuild))
MANPAGES := $(wildcard mininet/*.1 tc-patches/*.8 tcp_pert/*.7)
PLUGINS := $(patsubst tc-patches/%.c,%.so,$(wildcard tc-patches/[qm]_*.c))
COMPLETION := $(wildcard tc-patches/completion/*)

# The first and the last series of Linux that the tests build for and run.
TESTED := 6.1 7.2
ifndef KVER
KVER := $(if $(KDIR),$(shell sed -n 's/^.define UTS_RELEASE "\(.*\)"/\1/p' \
	$(KDIR)/include/generated/utsrelease.h 2>/dev/null),$(shell uname -r))
endif
KDIR ?= /lib/modules/$(KVER)/build
OUT ?= build/out

PREFIX ?= /usr
ifndef TCDIR
ifeq ($(PREFIX),/usr)
TCDIR := $(shell PATH=$$PATH:/usr/sbin:/sbin; grep -aoE '/[[:alnum:]/_.+-]*lib[[:alnum:]/_.+-]*/tc/' \
	"$$(command -v tc)" 2>/dev/null | sed 's,/$$,,;q')
endif
ifeq ($(TCDIR),)
TCDIR := $(PREFIX)/lib/$(shell $(CC) -print-multiarch)/tc
endif
endif
MODDIR = $(DESTDIR)/lib/modules/$(KVER)/updates/aqmkit
PLUGINDIR = $(DESTDIR)$(TCDIR)
MANDIR = $(DESTDIR)$(PREFIX)/share/man
COMPDIR = $(DESTDIR)$(if $(filter /usr /usr/local,$(PREFIX)),,$(PREFIX))/etc/bash_completion.d
BINDIR = $(DESTDIR)$(PREFIX)/bin
LIBDIR = $(DESTDIR)$(PREFIX)/lib/aqmkit
COMMANDS := aqm-top aqm-tune
export PATH := $(PATH):/usr/sbin:/sbin

# Where Secure Boot asks for signatures, a key is there already: shim's, or DKMS's.
ifndef SIGN_KEY
SIGN_KEY := $(if $(DESTDIR),,$(firstword $(wildcard \
	/var/lib/shim-signed/mok/MOK.priv /var/lib/dkms/mok.key)))
endif
SIGN_CERT ?= $(patsubst %.priv,%.der,$(SIGN_KEY:%.key=%.pub))

PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest -p no:cacheprovider -q
JUNIT := build/junit

all: modules plugins

## For a router

refuse := exec sh -c 'echo "$$@" >&2; exit 1' sh

# From a copy of the sources, so that one tree serves many kernels at a time.
modules:
	@test -d $(KDIR) || $(refuse) "No kernel headers in $(KDIR): install" \
		"linux-headers-$(KVER), or name other headers with KDIR=."
	@printf '%s\n' $(firstword $(TESTED)) \
		"$$(echo '$(KVER)' | grep -oE '^[0-9]+\.[0-9]+')" $(lastword $(TESTED)) | \
		sort -VC || test "$(UNTESTED)" || $(refuse) "Linux $(KVER) is not among those that" \
		"aqmkit is tested with, $(firstword $(TESTED)) to $(lastword $(TESTED)):" \
		"UNTESTED=1 builds for it all the same."
	@mkdir -p $(OUT)/src
	@cp -rp include $(MODULES) $(OUT)/src
	@printf 'obj-m += %s/\n' $(notdir $(MODULES)) > $(OUT)/src/Kbuild
	$(MAKE) -C $(KDIR) M=$(abspath $(OUT))/src modules
	@$(RM) $(OUT)/*.ko
	@cp $(patsubst %,$(OUT)/src/%/*.ko,$(notdir $(MODULES))) $(OUT)

plugins:
	$(MAKE) -C tc-patches OUT=$(abspath $(OUT))

# What make has built, and no more: root need not compile, nor fetch anything.
install: install-modules install-tools

install-modules:
	@ls $(OUT)/*.ko >/dev/null 2>&1 || \
		$(refuse) "There are no modules in $(OUT): do make first."
	@kernel=$$(modinfo -F vermagic $(OUT)/*.ko | cut -d' ' -f1 | sort -u); \
	test "$$kernel" = "$(KVER)" || $(refuse) "The modules in $(OUT) are for Linux" $$kernel, \
		"not for $(KVER): do make first, with the same KDIR or KVER."
	@test -z "$(SIGN_KEY)" || test -r "$(SIGN_KEY)" -a -r "$(SIGN_CERT)" || \
		$(refuse) "To sign modules, $(SIGN_KEY) and $(SIGN_CERT) are needed."
	@$(RM) -r $(MODDIR)
	@install -d $(MODDIR)
	@install -m 644 $(OUT)/*.ko $(MODDIR)
	@strip --strip-debug $(MODDIR)/*.ko
	@test -z "$(SIGN_KEY)" || for module in $(MODDIR)/*.ko; do \
		$(KDIR)/scripts/sign-file \
			"$$(sed -n 's/^CONFIG_MODULE_SIG_HASH="*\([a-z0-9-]*\).*/\1/p' \
				$(KDIR)/include/config/auto.conf)" \
			$(SIGN_KEY) $(SIGN_CERT) $$module || exit; \
	done
	@$(if $(DESTDIR),,depmod $(KVER))
	@echo "$(words $(wildcard $(OUT)/*.ko)) modules for Linux $(KVER)," \
		"$(if $(SIGN_KEY),signed with $(SIGN_KEY),not signed): $(MODDIR)"

install-tools:
	@cd $(OUT) 2>/dev/null && ls $(PLUGINS) >/dev/null 2>&1 || \
		$(refuse) "There are not all plug-ins of tc in $(OUT): do make first."
	@install -d $(PLUGINDIR) $(MANDIR)/man1 $(MANDIR)/man7 $(MANDIR)/man8 $(COMPDIR) $(BINDIR)
	@install -m 644 $(PLUGINS:%=$(OUT)/%) $(PLUGINDIR)
	@install -m 644 $(filter %.1,$(MANPAGES)) $(MANDIR)/man1
	@install -m 644 $(filter %.7,$(MANPAGES)) $(MANDIR)/man7
	@install -m 644 $(filter %.8,$(MANPAGES)) $(MANDIR)/man8
	@install -m 644 $(COMPLETION) $(COMPDIR)
	@$(RM) -r $(LIBDIR)
	@install -d $(LIBDIR)/aqmlab $(LIBDIR)/models
	@install -m 644 mininet/aqmlab/*.py $(LIBDIR)/aqmlab
	@install -m 644 mininet/models/*.py $(LIBDIR)/models
	@install -m 755 $(COMMANDS:%=mininet/%) $(LIBDIR)
	@ln -sf $(COMMANDS:%=../lib/aqmkit/%) $(BINDIR)
	@echo "$(words $(PLUGINS)) plug-ins of tc: $(PLUGINDIR)"
	@$(if $(filter /usr,$(PREFIX)),,echo "tc finds them if TC_LIB_DIR=$(TCDIR) is set.")
	@echo "$(words $(MANPAGES)) man pages: $(MANDIR)"
	@echo "bash completion: $(COMPDIR)"
	@echo "$(COMMANDS): $(BINDIR)"

TOOLS = $(PLUGINS:%=$(PLUGINDIR)/%) $(COMMANDS:%=$(BINDIR)/%) $(LIBDIR) \
	$(foreach page,$(MANPAGES),$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(notdir $(page))) \
	$(COMPLETION:tc-patches/completion/%=$(COMPDIR)/%)

# Of every kernel that has our modules; folders that are empty then go, too, up to DESTDIR.
uninstall:
	@for folder in $(DESTDIR)/lib/modules/*/updates/aqmkit; do \
		test -d "$$folder" || continue; \
		kernel=$${folder%/updates/aqmkit}; \
		kernel=$${kernel##*/}; \
		$(RM) -r "$$folder"; \
		$(if $(DESTDIR),:,depmod "$$kernel"); \
		echo "removed $$folder"; \
		(cd $(DESTDIR)/ && rmdir -p --ignore-fail-on-non-empty "lib/modules/$$kernel/updates"); \
	done
	@$(RM) -r $(TOOLS)
	@cd $(DESTDIR)/ 2>/dev/null || exit 0; \
	for folder in $(sort $(patsubst $(DESTDIR)/%,%,$(dir $(TOOLS)))); do \
		test ! -d $$folder || rmdir -p --ignore-fail-on-non-empty $$folder; \
	done
	@echo "removed the plug-ins of tc, the man pages, bash completion, $(COMMANDS)"
	@loaded=$$(grep -ohE '\w+\.o\>' */Kbuild | while read -r name; do \
		test ! -d /sys/module/$${name%.o} || printf ' %s' $${name%.o}; done); \
	test -n "$(DESTDIR)" -o -z "$$loaded" || \
		echo "still loaded, until the next start or rmmod:$$loaded"

## For a laboratory

PACKAGES = $(shell grep -v '^\#' packages.txt)

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

HOST_SUITES := stock fuzz tdc experiment docs papers lab report unit trust lint bench
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
test-lint test-papers test-lab test-experiment test-bench test-docs: lab
test-net test-tdc test-fuzz: lab

$(HOST_SUITES:%=test-%): test-%:
	$(PYTEST) --junitxml=$(JUNIT)/$*.xml tests/$* $(OPTIONS)

# tc's own tests, on these kernels. There are 6.1, four times as slow, and debug, too.
TDC ?= 6.12 7.2
test-tdc: OPTIONS = $(TDC:%=--on %)

test-fuzz: debug-kernel
debug-kernel: | packages
	lab/build --flavour debug

# The long form; what it did goes to build/trust/fuzz.json, too.
MESSAGES ?= 10000000
SEED ?= 1
fuzz: .venv debug-kernel
	@$(PYTHON) tests/fuzz/fuzz.py --messages $(MESSAGES) --seed $(SEED) --json build/trust/fuzz.json

# Within the lab's guest, on one kernel after the other: all of tests/net, but on
# other releases, unless by `make trust`, only what a kernel's interfaces have a say
# in, and that once with each kind of queue.
INTERFACES := devices netlink packets parents pert rttlabel shown super wreno xqm
NET = tests/net
test-linux-6.1 test-linux-7.2: NET = $(INTERFACES:%=tests/net/test_%.py)
test-linux-6.1 test-linux-7.2: OPTIONS = --smoke
test-debug: KERNEL := --flavour debug
test-linux-6.1 test-linux-7.2: KERNEL = --kernel $(*:linux-%=%)
test-debug test-linux-6.1 test-linux-7.2: build-kernel = lab/build $(KERNEL)

$(GUEST_SUITES:%=test-%): test-%:
	$(build-kernel)
	@mkdir -p $(JUNIT)
	lab/run $(KERNEL) --out $(JUNIT) -- \
		$(PYTEST) --junitxml=$(JUNIT)/$*.xml $(NET) $(OPTIONS)

matrix: .venv
	@$(PYTHON) tests/trust/matrix.py $(if $(JSON),--json) \
		$(wildcard $(JUNIT)/*.xml build/trust/*/*.xml)

trust: .venv lab
	$(PYTHON) tests/trust/trust.py $(if $(ONLY),--only $(ONLY)) \
		$(if $(MESSAGES),--messages $(MESSAGES))

clean:
	$(RM) -r build out .venv

.PHONY: all modules plugins install install-modules install-tools uninstall packages lab \
	demo papers report docs verify test $(TESTS) debug-kernel fuzz matrix trust clean
