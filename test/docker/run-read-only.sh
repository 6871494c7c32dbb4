# run-read-only.sh ROOT COMMAND…: runs a command in a mounted image as its user, with the root mounted read-only, no
# capabilities and an empty environment. To be started in a mount namespace of its own: unshare --mount sh run-read-only.sh …
set -eu
root=$1
shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -o remount,ro,bind "$root"
exec setpriv --no-new-privs chroot --userspec=1000:1000 --groups= "$root" \
  /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin NODE_ENV=production "$@"
