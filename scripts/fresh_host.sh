#!/usr/bin/env bash
# The README's two commands as on a bare host: scripts/fresh_host.sh KIND [demo|test|both]
#
# It makes one from what is here: a PATH that holds Python, make and Debian's base system, an empty
# home, a fresh clone of the last commit. Prints after how long there was a picture and a sample,
# and exit codes, and what was late on a host that was quiet when it began; ON_TIME=1 makes that a
# failure. All that it made is removed again, whichever way it ends.
#
# Kinds:
#   engine          a Docker engine without any image, no registry, no debootstrap (needs root)
#   registry        the same; the base image is loaded into it beforehand, a stand-in for a registry
#   no-engine       none answers
#   no-root         as no-engine, for a user who is made for it (needs root)
#   no-root-engine  as engine, for such a user who may talk to it (needs root)
#
# TESTS="cli ssh" tests these rooms or files only. WHOLE=1 runs `make demo` to its end with an engine
# too (about ten minutes); else that is 60 s of a budget. LAST=SECONDS is how long the first sample is
# waited for.
set -euo pipefail

kind=${1:-}
what=${2:-demo}
tree=$(cd "$(dirname "$0")/.." && pwd)
scripts=$tree/scripts

refuse() { echo "fresh_host: $1" >&2; exit 2; }
say() { echo "fresh_host: $1"; }
needs() { command -v "$1" >/dev/null || refuse "$1 is needed for the kind $kind; it is in the package $2"; }
needs_root() { [ "$(id -u)" -eq 0 ] || refuse "the kind $kind can only be made by root"; }

case $kind in
    engine | registry) engine=yes user= ;;
    no-engine) engine= user= ;;
    no-root) engine= user=yes ;;
    no-root-engine) engine=yes user=yes ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
case $what in demo | test | both) ;; *) refuse "$what is none of demo, test, both" ;; esac
needs dpkg-query dpkg
needs git git
needs make make
if [ -n "$user" ]; then needs_root; needs /usr/bin/python3 python3; needs useradd passwd; needs setpriv util-linux; fi
if [ -n "$engine" ]; then
    needs_root
    needs dockerd docker.io
    needs docker docker.io
    needs ip iproute2
    needs iptables iptables
    needs nsenter util-linux
fi

host=$(mktemp -d /var/tmp/fresh-host.XXXXXX)
chmod 755 "$host"
name=fresh$$
undo=()
attended=
# shellcheck disable=SC2317  # called by the trap
clean_up() {
    code=$?
    trap - EXIT INT TERM
    set +e
    [ -z "$attended" ] || { kill "$attended"; wait "$attended"; } 2>/dev/null
    for ((i = ${#undo[@]} - 1; i >= 0; i--)); do eval "${undo[i]}" >/dev/null 2>&1; done
    rm -rf "$host"
    exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a command and waits for it so that a signal to this script is heard at once.
attend() {
    local code=0
    "$@" </dev/null &
    attended=$!
    wait "$attended" || code=$?
    attended=
    return "$code"
}

# ------------------------------------------------------------------ a PATH of the base system
mkdir "$host/bin" "$host/home"
packages=$(dpkg-query -W -f '${Package} ${Essential} ${Priority}\n' |
    awk '$2 == "yes" || $3 == "required" { print $1 }')
# shellcheck disable=SC2086  # one word each
dpkg-query -L $packages apt gpgv make | grep -E '^(/usr)?/s?bin/[^/]+$' | while read -r program; do
    [ -x "$program" ] && ln -sf "$program" "$host/bin/"
done
# What alternatives and scripts bring to such a system; awk is one.
for program in awk which; do ln -sf "$(command -v $program)" "$host/bin/"; done
# The user who is made for it cannot look into another's home.
python=$([ -n "$user" ] && echo /usr/bin/python3 || python3 -c 'import sys; print(sys.executable)')
ln -sf "$python" "$host/bin/python3"
for absent in cargo debootstrap tmux ssh ssh-keygen docker oha; do
    [ ! -e "$host/bin/$absent" ] || refuse "$absent is in the base system of this host"
done

# What this host needs to reach packages goes along; nothing else of its environment does.
keep=(PATH="$host/bin" HOME="$host/home" LANG=C.UTF-8 TERM=xterm-256color USER="${user:+$name}")
while IFS= read -r variable; do
    keep+=("$variable=${!variable}")
done < <(compgen -e | grep -iE '^(pip_.*|.*_proxy|ssl_cert_.*|requests_ca_bundle|cargo_(http|net|registr|source).*)$')
for file in "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    if [ -f "$file" ]; then mkdir -p "$host/home/.config/pip"; cp "$file" "$host/home/.config/pip/"; fi
done
if [ -n "${CARGO_HOME:-}" ]; then settings=$CARGO_HOME; else settings=$HOME/.cargo; fi
for file in "$settings/config.toml" "$settings/config"; do
    if [ -f "$file" ]; then mkdir -p "$host/home/.cargo"; cp "$file" "$host/home/.cargo/"; fi
done

# ------------------------------------------------------------------ an engine of its own, or none
# A network namespace keeps its bridges and rules apart from those of the host's own engine.
start_engine() {
    local subnet=10.213.$(($$ % 250)) mtu driver out pid
    out=$(ip -4 route show default | awk '{ print $5; exit }')
    mtu=$(docker network inspect bridge -f '{{index .Options "com.docker.network.driver.mtu"}}' 2>/dev/null || true)
    [ -n "$mtu" ] || mtu=$(cat "/sys/class/net/$out/mtu")
    driver=$(docker info -f '{{.Driver}}' 2>/dev/null || true)
    ip netns add "$name"
    undo+=("ip netns delete $name")
    ip link add "$name" type veth peer name up0 netns "$name"
    undo+=("ip link delete $name")
    ip addr add "$subnet.1/30" dev "$name"
    ip link set "$name" up
    ip -n "$name" addr add "$subnet.2/30" dev up0
    ip -n "$name" link set up0 up
    ip -n "$name" link set lo up
    ip -n "$name" route add default via "$subnet.1"
    [ "$(cat /proc/sys/net/ipv4/ip_forward)" = 1 ] || refuse "this host forwards nothing (net.ipv4.ip_forward)"
    iptables -I FORWARD -i "$name" -j ACCEPT
    undo+=("iptables -D FORWARD -i $name -j ACCEPT")
    iptables -I FORWARD -o "$name" -j ACCEPT
    undo+=("iptables -D FORWARD -o $name -j ACCEPT")
    iptables -t nat -A POSTROUTING -s "$subnet.0/30" -j MASQUERADE
    undo+=("iptables -t nat -D POSTROUTING -s $subnet.0/30 -j MASQUERADE")
    echo '{}' >"$host/daemon.json"
    # With the internet at hand it would pull what this kind of host is to do without.
    env -u NO_PROXY -u no_proxy HTTP_PROXY=http://127.0.0.1:1 HTTPS_PROXY=http://127.0.0.1:1 \
        nsenter --net="/run/netns/$name" dockerd --config-file "$host/daemon.json" \
        --data-root "$host/docker" --exec-root "$host/run" --pidfile "$host/docker.pid" \
        --host "unix://$host/docker.sock" --group "$(id -g ${user:+"$name"})" --mtu "$mtu" \
        ${driver:+--storage-driver "$driver"} >"$host/dockerd.log" 2>&1 &
    pid=$!
    undo+=("umount -l $host/run/netns/*" "umount -l $host/docker/fuse-overlayfs" "wait $pid" "kill $pid")
    for _ in $(seq 120); do
        if docker -H "unix://$host/docker.sock" version >/dev/null 2>&1; then return; fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.5
    done
    tail -5 "$host/dockerd.log" >&2
    refuse "a second dockerd does not start here"
}

as=()
if [ -n "$user" ]; then
    useradd --no-create-home --home-dir "$host/home" --shell /bin/sh "$name"
    undo+=("userdel $name")
    # Its engine ends when it is told to; what else of it is left must not outlive the user.
    undo+=("for pid in \$(ps -o pid= -u $name); do kill \$pid; done")
    as=(setpriv --reuid "$name" --regid "$name" --init-groups)
fi
if [ -n "$engine" ]; then
    start_engine
    keep+=(DOCKER_HOST="unix://$host/docker.sock")
    if [ "$kind" = registry ]; then
        image=debian:bookworm-slim
        docker image inspect $image >/dev/null 2>&1 ||
            refuse "the host's own engine has no $image to lend: workbench images build makes it"
        docker save $image | docker -H "unix://$host/docker.sock" load -q >/dev/null
        say "a stand-in for a registry: $image was loaded beforehand"
    fi
else
    keep+=(DOCKER_HOST="unix://$host/none.sock")
fi

git clone --quiet --no-hardlinks "$tree" "$host/tree"
[ -z "$(git -C "$tree" status --porcelain)" ] || say "what is not committed is not in it"
[ -z "$user" ] || chown -R "$name:" "$host/tree" "$host/home"
bare=("${as[@]}" env -i "${keep[@]}")
cd "$host/tree"
# shellcheck disable=SC2016  # eval in the trap
undo+=('"${bare[@]}" .venv/bin/workbench engine stop')

# ------------------------------------------------------------------ the two commands
failed=0
run() {
    local title=$1 began=$SECONDS code=0
    shift
    attend "${bare[@]}" "$@" >"$host/last.log" 2>&1 || code=$?
    say "$kind: $title: exit code $code after $((SECONDS - began)) s"
    grep '^SKIPPED' "$host/last.log" || true  # what a bare host lacks, by name
    tail -2 "$host/last.log"
    if [ "$code" -ne 0 ]; then failed=1; tail -30 "$host/last.log"; fi
}
if [ "$what" != test ]; then
    say "$kind: make demo on a terminal"
    attend "$python" "$scripts/fresh_demo.py" "$host/tree" "${LAST:-900}" "${engine:+docker}" -- \
        "${bare[@]}" || failed=1
    "${bare[@]}" .venv/bin/workbench engine stop >/dev/null 2>&1 || true
    if [ -n "$engine" ] && [ -z "${WHOLE:-}" ]; then
        # A finding is exit code 1, and no error.
        run "a demo of 60 s without a terminal" \
            sh -c '.venv/bin/workbench run demo --headless --budget 60s || test $? -eq 1'
    else
        run "make demo without a terminal" make demo
    fi
fi
[ "$what" = demo ] || run "make test" make test TESTS="${TESTS:-}"
exit $failed
