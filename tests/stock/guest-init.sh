#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The first program of the virtual machine: guest-init.sh OUT MODULES TC_LIB_DIR FOLDER COMMAND...
# runs COMMAND in FOLDER and leaves in OUT its output, its exit status and the kernel's log.
out=$1 modules=$2 plugins=$3 folder=$4
shift 4

mkdir -p /run/home /run/tmp /run/netns
ip link set lo up

# The machine's files are read-only and have no modules of this kernel: the kernel's own calls of
# modprobe are led to where they are.
cat > /run/modprobe <<EOF
#!/bin/sh
exec /sbin/modprobe --dirname '$modules' "\$@"
EOF
chmod +x /run/modprobe
echo /run/modprobe > /proc/sys/kernel/modprobe
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing

cd "$folder" || exit
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	HOME=/run/home TMPDIR=/run/tmp LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 \
	AQM_OUT="$out" MODPROBE_OPTIONS="--dirname $modules" ${plugins:+"TC_LIB_DIR=$plugins"} \
	"$@" > "$out/stdout" 2> "$out/stderr"
echo $? > "$out/status"
dmesg > "$out/dmesg"
