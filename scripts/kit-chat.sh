#!/bin/sh
# The chat kit as files, for pages that must work without this server.
#
#   scripts/kit-chat.sh copy DIR      copy pepper-chat.js and pepper-chat.css into DIR, once
#   scripts/kit-chat.sh follow DIR    copy them, and again after every commit that changes the kit
#   scripts/kit-chat.sh forget DIR    stop following
#   scripts/kit-chat.sh refresh       copy into every folder that follows (what the post-commit hook runs)
#
# The folders are kept in this checkout's git configuration (kit-chat.folder), and nowhere else.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
kit="$here/src/crocevia/kit"
files="pepper-chat.js pepper-chat.css"
LC_ALL=C # the parts of the script come in the order of their names, whatever the language of the machine
export LC_ALL

fail() { echo "kit-chat: $*" >&2; exit 1; }

folder() {
  [ -n "${1:-}" ] || fail "which folder? (scripts/kit-chat.sh $command DIR)"
  [ -d "$1" ] || fail "$1 is not a folder"
  (CDPATH='' cd -- "$1" && pwd)
}

# A file of the kit, as the server sends it.
written() {
  case $1 in *.js) cat "$kit"/parts/*.js ;; *) cat "$kit/$1" ;; esac
}

copy() {
  for file in $files; do
    fresh="$1/.$file.$$"
    written "$file" >"$fresh" || { rm -f "$fresh"; fail "the kit of this checkout cannot be read"; }
    # Renamed into place: a page that loads meanwhile gets the old file or the new one, never half of it.
    if cmp -s "$fresh" "$1/$file"; then rm -f "$fresh"; else mv "$fresh" "$1/$file" && echo "kit-chat: $1/$file"; fi
  done
}

install_hook() {
  hook=$(git -C "$here" rev-parse --git-path hooks/post-commit)
  case $hook in /*) ;; *) hook="$here/$hook" ;; esac
  mkdir -p "$(dirname -- "$hook")"
  [ -e "$hook" ] || printf '#!/bin/sh\n' >"$hook"
  grep -q 'kit-chat.sh" refresh' "$hook" || printf '%s\n' 'sh "$(git rev-parse --show-toplevel)/scripts/kit-chat.sh" refresh || true' >>"$hook"
  chmod +x "$hook"
}

command=${1:-}
case $command in
  copy)
    target=$(folder "${2:-}")
    copy "$target"
    ;;
  follow)
    target=$(folder "${2:-}")
    copy "$target"
    git -C "$here" config --get-all kit-chat.folder 2>/dev/null | grep -Fxq -- "$target" || git -C "$here" config --add kit-chat.folder "$target"
    install_hook
    echo "kit-chat: $target follows the kit"
    ;;
  forget)
    target=$(folder "${2:-}")
    kept=$(git -C "$here" config --get-all kit-chat.folder 2>/dev/null | grep -Fxv -- "$target" || true)
    git -C "$here" config --unset-all kit-chat.folder 2>/dev/null || true
    [ -z "$kept" ] || printf '%s\n' "$kept" | while IFS= read -r one; do git -C "$here" config --add kit-chat.folder "$one"; done
    ;;
  refresh)
    git -C "$here" config --get-all kit-chat.folder 2>/dev/null | while IFS= read -r one; do
      if [ -d "$one" ]; then copy "$one"; else echo "kit-chat: $one is gone; left out" >&2; fi
    done
    ;;
  *)
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    [ "$command" = "--help" ] || exit 2
    ;;
esac
