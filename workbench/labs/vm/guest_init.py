"""What a guest runs: an init that loads its drivers, and in it an agent that takes orders.

Both are one script for busybox. Orders come over a virtio port, a line each, and every one is
answered by a line (`guest_agent.GuestAgent`):

```
NUMBER run SECONDS WORD...      runs a program to its end     NUMBER CODE OUT ERR
NUMBER serve WORD...            (re)starts the function       NUMBER 0 - -
NUMBER served                   has the function ended?       NUMBER 0 CODE-or-nothing -
NUMBER halt                     ends the function             NUMBER 0 - -
NUMBER put MODE PATH PIECE      begins a file                 NUMBER CODE - ERR
NUMBER add MODE PATH PIECE      goes on with it
```

Words, pieces and texts are base64 behind a colon, so that none is empty or holds a space.
"""

from __future__ import annotations

READY = "ready"
MOST_TEXT = 1 << 16
"""Bytes of what a program says that are handed out, of either stream."""
PORT = "org.workbench.agent"
DRIVERS = "/lib/guest-drivers"
"""One driver in each line of `order` there; files beside it."""

INIT = rf"""#!/usr/bin/busybox sh
b=/usr/bin/busybox
$b mkdir -p /proc /sys /dev /tmp /run /var/tmp /var/log /busybox
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mkdir -p /dev/shm /dev/pts
$b mount -t tmpfs shm /dev/shm
$b mount -t tmpfs run /run
$b mount -t tmpfs -o mode=1777 tmp /tmp
$b --install -s /busybox
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/busybox
[ -e /bin/sh ] || ln -s /usr/bin/busybox /bin/sh
while read -r driver; do insmod {DRIVERS}/$driver || echo "driver $driver does not load"; done \
    <{DRIVERS}/order
ip link set lo up
port=
tries=0
while [ -z "$port" ] && [ $tries -lt 200 ]; do
    for one in /sys/class/virtio-ports/*; do
        [ "$(cat "$one/name" 2>/dev/null)" = {PORT} ] && port=/dev/${{one##*/}}
    done
    tries=$((tries + 1))
    [ -n "$port" ] || sleep 0.05
done
[ -n "$port" ] || {{ echo "this guest has no port for its agent"; poweroff -f; }}
exec 3<>"$port"

word() {{ printf %s "${{1#:}}" | base64 -d; printf x; }}
text() {{ printf :; head -c {MOST_TEXT} "$1" | base64 -w 0; }}
halt() {{
    [ -n "$serving" ] || return 0
    kill -9 -"$serving" 2>/dev/null
    wait "$serving" 2>/dev/null
    serving=
}}
serving=
: >/run/out; : >/run/err
echo {READY} >&3
while read -r number order rest <&3; do
    : >/run/out; : >/run/err
    code=0
    case $order in
    run)
        set -- $rest; seconds=$1; shift
        n=$#
        for w in "$@"; do one=$(word "$w"); set -- "$@" "${{one%x}}"; done
        shift $n
        timeout -s KILL "$seconds" "$@" </dev/null >/run/out 2>/run/err 3>&-
        code=$? ;;
    serve)
        halt
        set -- $rest
        n=$#
        for w in "$@"; do one=$(word "$w"); set -- "$@" "${{one%x}}"; done
        shift $n
        rm -f /run/served
        setsid sh -c '"$@" 3>&-; echo $? >/run/served' serve "$@" \
            </dev/null >/dev/ttyS0 2>&1 3>&- &
        serving=$! ;;
    served)
        cat /run/served >/run/out 2>/dev/null ;;
    halt)
        halt ;;
    put | add)
        set -- $rest
        path=$(word "$2"); path=${{path%x}}
        mkdir -p "$(dirname "$path")" 2>>/run/err
        if [ "$order" = put ]; then : >"$path" 2>>/run/err; fi
        printf %s "${{3#:}}" | base64 -d >>"$path" 2>>/run/err && chmod "$1" "$path" 2>>/run/err
        code=$? ;;
    *)
        echo "the agent knows no order $order" >/run/err
        code=127 ;;
    esac
    echo "$number $code $(text /run/out) $(text /run/err)" >&3
done
echo "the port of its agent was closed"
poweroff -f
"""
USERS = """root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
proxy:x:13:13:proxy:/bin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
GROUPS = """root:x:0:
daemon:x:1:
tty:x:5:
proxy:x:13:
www-data:x:33:
nogroup:x:65534:
"""
"""Users that Debian's packages expect; their maintainer scripts do not run."""
