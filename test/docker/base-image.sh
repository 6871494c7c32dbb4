# base-image.sh FOLDER: fills the folder with a stand-in for node:24-slim, made of this machine's own packages, its Node.js and
# npm: for Debian machines that reach no registry of images. Sourced by nothing; run as root.
set -eu
root=$1
packages="libc6 libstdc++6 libgcc-s1 dash coreutils bash base-files base-passwd passwd libselinux1 libpcre2-8-0 libacl1 libattr1
libgmp10 libtinfo6 tar gzip libssl3 util-linux libcrypt1 findutils"

for folder in usr/bin usr/sbin usr/lib usr/lib64 usr/local/bin usr/local/lib/node_modules etc proc dev sys tmp root home/node; do
  mkdir -p "$root/$folder"
done
for link in bin sbin lib lib64; do ln -s "usr/$link" "$root/$link"; done
chmod 1777 "$root/tmp"
# shellcheck disable=SC2086
dpkg -L $packages | grep -v -E '^/usr/share/(doc|man|locale|lintian|info)' | sort -u |
  while read -r path; do if [ -f "$path" ] || [ -L "$path" ]; then echo "$path"; fi; done |
  tar -cf - --no-recursion -T - 2>/dev/null | tar -C "$root" --keep-directory-symlink -xf -

cp "$(readlink -f "$(command -v node)")" "$root/usr/local/bin/node"
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
cp -R "$npm" "$root/usr/local/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
printf 'root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nnode:x:1000:\n' >"$root/etc/group"
chown -R 1000:1000 "$root/home/node"
