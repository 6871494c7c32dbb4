import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * The folder that a Debian package is unpacked in, without being installed: fetched once. Test files that want it at the same
 * time wait for the first of them (apt has one lock for its lists, too), and none sees half of it.
 */
export function unpacked(name: string, folder: string): string {
  if (existsSync(folder)) return folder
  mkdirSync(dirname(folder), { recursive: true })
  execFileSync('flock', [`${folder}.lock`, 'sh', '-ec', fetch, 'sh', name, folder], { stdio: 'pipe' })
  return folder
}

const fetch = `
[ ! -e "$2" ] || exit 0
work=$(mktemp -d "$2.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download "$1" || { apt-get update -qq; apt-get download "$1"; }
dpkg-deb -x ./*.deb tree
mv tree "$2"
`
