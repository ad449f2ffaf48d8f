# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# What docs/router.md takes for granted: installed programs; eth0, from which a modem's link of
# 20 Mb/s, 20 ms long, leads to 192.0.2.2; and a host behind the router, 10 ms from it, on which
# iperf3 and ping are typed.
mkdir "$TMPDIR/bin"
for program in aqm-top aqm-tune; do
	printf '#!/bin/sh\nexec %s %s "$@"\n' "$PWD/.venv/bin/python" "$PWD/mininet/$program" \
		> "$TMPDIR/bin/$program"
	chmod +x "$TMPDIR/bin/$program"
done
for program in iperf3 ping; do
	printf '#!/bin/sh\nexec ip netns exec lan %s "$@"\n' "$(command -v $program)" \
		> "$TMPDIR/bin/$program"
	chmod +x "$TMPDIR/bin/$program"
done

ip netns add lan
ip netns add modem
ip netns add beyond
ip link add name eth0 type veth peer name here netns modem
ip link add name there netns modem type veth peer name eth0 netns beyond
ip -n modem link add name bridge type bridge
for port in here there; do
	ip -n modem link set "$port" master bridge up
	ip netns exec modem ethtool -K "$port" gro off gso off tso off > /dev/null
done
ip -n modem link set bridge up
tc -n modem qdisc add dev there root tbf rate 20mbit burst 3k limit 300k
tc -n beyond qdisc add dev eth0 root netem delay 20ms limit 10000
ip address add 192.0.2.1/24 dev eth0
ip -n beyond address add 192.0.2.2/24 dev eth0
ethtool -K eth0 gro off gso off tso off > /dev/null
ip link set eth0 up
ip -n beyond link set eth0 up
ip -n beyond route add default via 192.0.2.1

ip link add name lan0 type veth peer name eth0 netns lan
ip address add 198.51.100.1/24 dev lan0
ip -n lan address add 198.51.100.2/24 dev eth0
ip netns exec lan ethtool -K eth0 gro off gso off tso off > /dev/null
# it takes packets off their sockets, which would else hold back when they wait elsewhere
tc -n lan qdisc add dev eth0 root netem delay 10ms limit 10000
ip link set lan0 up
ip -n lan link set eth0 up
ip -n lan route add default via 198.51.100.1
sysctl -qw net.ipv4.ip_forward=1

ip netns exec beyond iperf3 --server --daemon
PATH=$TMPDIR/bin:$PATH
sleep 2
cd "$TMPDIR" || exit
