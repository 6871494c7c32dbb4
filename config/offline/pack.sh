#!/bin/sh
# Makes alert-bridge-VERSION-PLATFORM.tar.gz: the bridge with its production dependencies, by the lockfile, for machines that
# reach no registry. Run it in a checkout, on the platform that it is for: sh config/offline/pack.sh [FOLDER]
# There it needs Node.js >= 22.19, not 23 (and redis-server, unless redis.url names one): unpack it and run alert-bridge/alert-bridge.
set -eu
target=$(cd "${1:-.}" && pwd)
cd "$(dirname "$0")/../.."
. ./setup.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bridge="$work/alert-bridge"
mkdir "$bridge"
# What belongs to the package, and nothing else that lies in the checkout: config/.env may hold secrets.
package=$(npm pack --silent --pack-destination "$work" | tail -n 1)
tar -xzf "$work/$package" --strip-components=1 -C "$bridge"
cp package-lock.json .npmrc "$bridge/"
(cd "$bridge" && npm ci --omit=dev --ignore-scripts --prefer-offline --no-audit --no-fund --loglevel=error >/dev/null)
find "$bridge/node_modules" -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
rm "$bridge/.npmrc"
cat >"$bridge/alert-bridge" <<'END'
#!/bin/sh
main="$(dirname "$(readlink -f "$0")")/dist/main.js"
# A Node.js that does not know the option is too old, which the bridge says in a sentence.
node --disable-sigusr1 -v >/dev/null 2>&1 || exec node "$main" "$@"
MALLOC_ARENA_MAX=${MALLOC_ARENA_MAX:-2} exec node --disable-sigusr1 --max-semi-space-size=16 "$main" "$@"
END
chmod 755 "$bridge/alert-bridge"
name=$(node -p '`alert-bridge-${require("./package.json").version}-${process.platform}-${process.arch}.tar.gz`')
# The same content makes the same bytes but for the times of the files. Whoever runs the bridge can read them, whatever umask is here.
tar -C "$work" --mode=u+rwX,go+rX,go-w --owner=0 --group=0 --numeric-owner --sort=name -czf "$target/$name" alert-bridge
(cd "$target" && sha256sum "$name" >"$name.sha256")
echo "$target/$name"
