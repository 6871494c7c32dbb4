#!/bin/sh
# Builds the image from the Dockerfile as it stands, says what is in it, and runs it as its user, read-only, against a real
# Redis and the sandbox until SIGTERM. For root on Debian, without a Docker engine: apt-get install buildah redis-server curl.
# Takes one to two minutes: sh test/docker/image.sh
set -eu
cd "$(dirname "$0")/../.."
. ./setup.sh
folder=$(mktemp -d)
export STORAGE_DRIVER="${STORAGE_DRIVER:-vfs}"
container= pids=
finish() {
  # shellcheck disable=SC2086
  [ -z "$pids" ] || kill $pids 2>/dev/null || true
  [ -z "$container" ] || buildah rm "$container" >/dev/null
  rm -rf "$folder"
}
trap finish EXIT
fail() {
  echo "image: $1" >&2
  exit 1
}
port() { node -e 'const s=require("node:net").createServer();s.listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})'; }

if ! buildah pull -q --policy missing docker.io/library/node:24-slim >/dev/null 2>&1; then
  echo "image: no registry of images is reached; node:24-slim is made of this machine's packages"
  sh test/docker/base-image.sh "$folder/base"
  made=$(buildah from scratch)
  buildah add -q "$made" "$folder/base" / >/dev/null
  buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$made"
  buildah commit -q --rm "$made" docker.io/library/node:24-slim >/dev/null
fi

# Where npm needs an authority of this machine's own, the build needs it too. Neither gets into the image.
certificates=${NODE_EXTRA_CA_CERTS:-}
: >"$folder/npmrc"
set --
if [ -n "$certificates" ]; then
  echo 'cafile=/tmp/certificates.pem' >"$folder/npmrc"
  set -- --volume "$(readlink -f "$certificates"):/tmp/certificates.pem:ro"
fi
version=$(node -p 'require("./package.json").version')
buildah bud -q --isolation chroot --network host --pull-never --format docker --build-arg "VERSION=$version" \
  --volume "$folder/npmrc:/root/.npmrc:ro" "$@" -t alert-bridge:test . >"$folder/build.log" 2>&1 || {
  tail -20 "$folder/build.log" >&2
  fail 'the build failed'
}

container=$(buildah from --pull-never alert-bridge:test)
root=$(buildah mount "$container")
size() { du -sk --apparent-size "$1" | cut -f1; }
echo "image: /app $(size "$root/app") KB: node_modules $(size "$root/app/node_modules") KB, dist $(size "$root/app/dist") KB"
# shellcheck disable=SC2012
echo "image: the largest: $(du -sk --apparent-size "$root"/app/node_modules/* | sort -rn | head -6 | while read -r kb path; do printf '%s %s KB, ' "$(basename "$path")" "$kb"; done)"
[ "$(size "$root/app")" -lt 70000 ] || fail 'more than 70 MB over the base'
[ -z "$(find "$root/app" -name '*.map')" ] || fail 'there are source maps'
only_dev='Object.entries(require("./package-lock.json").packages).filter(([, { dev }]) => dev).map(([path]) => path).join("\n")'
for path in $(node -p "$only_dev"); do
  [ ! -e "$root/app/$path" ] || fail "$path is only for development"
done
[ -z "$(ls -A "$root/root/.npm" 2>/dev/null)" ] || fail 'the cache of npm is in it'
inspected=$(buildah inspect --type image --format '{{.Docker.Config.User}} {{.Docker.Config.Healthcheck.Test}} {{.Docker.Config.Labels}}' alert-bridge:test)
case $inspected in node*healthz*"image.version:$version"*) ;; *) fail "unlike the Dockerfile: $inspected" ;; esac

redis_port=$(port) api_port=$(port) hook_port=$(port) http_port=$(port)
redis-server --port "$redis_port" --save '' --daemonize no >/dev/null &
pids="$pids $!"
node src/main.ts sandbox --port "$api_port" --rate 120/m >/dev/null &
pids="$pids $!"
# Answers late, and counts: the stop comes while sends run.
node -e '
let [asked, answered] = [0, 0]
const report = () => require("node:fs").writeFileSync(process.argv[2], `${asked} ${answered}\n`)
require("node:http").createServer((_, answer) => {
  asked += 1; report()
  setTimeout(() => { answer.writeHead(204).end(); answered += 1; report() }, 2_000)
}).listen(Number(process.argv[1]), "127.0.0.1")' "$hook_port" "$folder/sends" &
pids="$pids $!"
mkdir -p "$root/etc/alert-bridge"
cat >"$root/etc/alert-bridge/config.yaml" <<END
redis: { url: "redis://127.0.0.1:$redis_port" }
http: { listen: "127.0.0.1:$http_port" }
sources: { main: { baseUrl: "http://127.0.0.1:$api_port", token: sandbox-token, poll: { every: 1s, minInterval: 1s } } }
sinks: { hook: { type: webhook, url: "http://127.0.0.1:$hook_port/", allowPrivateNetworks: true } }
routes: [{ sinks: [hook] }]
END
# It refuses to run where its root can be written to.
unshare --mount sh test/docker/run-read-only.sh "$root" sh -c 'cd /app && ! touch /app/x 2>/dev/null && exec "$@"' sh \
  node --disable-sigusr1 --max-semi-space-size=16 --max-old-space-size-percentage=75 /app/dist/main.js run --config /etc/alert-bridge/config.yaml >"$folder/log" 2>&1 &
bridge=$!
pids="$pids $bridge"
wait_for() {
  for _ in $(seq 600); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    kill -0 "$bridge" 2>/dev/null || break
    sleep 0.1
  done
  tail -5 "$folder/log" >&2
  fail "not within a minute: $*"
}
wait_for curl -sf "http://127.0.0.1:$http_port/readyz"
wait_for test -s "$folder/sends"
[ "$(awk '/^Uid:/ { print $2 }' "/proc/$bridge/status")" = 1000 ] || fail 'it runs as another user'
[ "$(awk '/^CapEff:/ { print $2 }' "/proc/$bridge/status")" = 0000000000000000 ] || fail 'it has capabilities'
memory=$(awk '/^VmRSS:/ { print int($2 / 1024) }' "/proc/$bridge/status")
health=$(sed -n 's/.*"-e", "\(.*\)"\].*/\1/p' Dockerfile)
HEALTH_URL="http://127.0.0.1:$http_port/healthz" node -e "$health" || fail 'HEALTHCHECK says that it is not well'
kill -TERM "$bridge"
wait "$bridge" || fail "it ended with $? on SIGTERM"
read -r asked answered <"$folder/sends"
[ "$asked" = "$answered" ] || fail "SIGTERM broke off sends: $answered of $asked answered"
HEALTH_URL="http://127.0.0.1:$http_port/healthz" node -e "$health" && fail 'HEALTHCHECK says that a bridge that is gone is well'
echo "image: ran as its user on a read-only root, $memory MB; SIGTERM let $asked sends finish"
