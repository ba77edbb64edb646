#!/bin/sh
# A day's look at the consumer groups of a cluster: snapshot, validate, plan, compare with the day
# before, report.
#
#   sh examples/daily.sh SOURCE FOLDER
#
# SOURCE  HOST:PORT of the cluster, or a folder that holds a snapshot
# FOLDER  gets a folder for each day: snapshot, plan, report.html, and the --json document of each
#         step as STEP.json
#
# DAY     the day's name (default: today in UTC, 2026-11-22); names of days must sort by time
# KASSIGN the command (default: kassign-spark)
# CONFIG  client properties for the snapshot: TLS and SASL (default: none)
#
# All steps use one Spark: the server that SPARK_REMOTE names or, if it names none, one that is started
# here and ended with the last step. Where that does not start, its own line says why, and each step
# starts a Spark of its own. On one Spark validate runs beside assign and diff, which saves a tenth of
# the time (24 s instead of 27 s on examples/fleet).
#
# Exit code 0: done; 1: done, and some step found something; 2 or more: a step failed, its own line
# on the error stream says why, and the steps behind it were not begun. Started again for the same
# day it takes the snapshot that is there and makes everything else anew, so a retry does no harm.
set -eu

if [ $# -ne 2 ]; then
  echo "usage: sh $0 HOST:PORT|SNAPSHOT FOLDER" >&2
  exit 2
fi
source=$1
folder=$2
name=${DAY:-$(date -u +%Y-%m-%d)}
day=$folder/$name
server=
validating=

# step NAME ARGUMENT...: run a command and keep its document. Exit code 1 says that it found
# something, and all is written: note it in a file and go on. Anything else is an error: end with it.
step() {
  what=$1
  shift
  code=0
  ${KASSIGN:-kassign-spark} "$@" --json >"$day/.$what.json" || code=$?
  case $code in
    0) ;;
    1) : >"$day/.$what.found" ;;
    *)
      rm -f "$day/.$what.json"
      exit "$code"
      ;;
  esac
  mv "$day/.$what.json" "$day/$what.json"
}

# Wait once until validate has ended; if it failed, so does this.
validated() {
  process=$validating
  validating=
  [ -z "$process" ] || wait "$process"
}

# A step that still runs ends by itself; then the server of this script does.
end() {
  validated || :
  { [ -z "$server" ] || { kill "$server" && wait "$server"; }; } 2>/dev/null || :
  rm -f "$day/.server" "$day"/.*.found
}

mkdir -p "$day"
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -z "${SPARK_REMOTE:-}" ]; then
  ${KASSIGN:-kassign-spark} serve >"$day/.server" &
  server=$!
  while [ ! -s "$day/.server" ] && kill -0 "$server" 2>/dev/null; do sleep 0.1; done
  eval "$(head -n 1 "$day/.server")"
fi

# The last day before this one that has a snapshot; the shell lists names in their order.
before=
for other in "$folder"/*/; do
  other=${other%/}
  [ "$other" = "$day" ] && break
  if [ -d "$other/snapshot" ]; then before=$other; fi
done

if [ ! -d "$day/snapshot" ]; then
  if [ -d "$source" ]; then
    rm -rf "$day/.snapshot"
    cp -R "$source" "$day/.snapshot"
    mv "$day/.snapshot" "$day/snapshot"
  else
    step snapshot snapshot --bootstrap-server "$source" --offsets --output "$day/snapshot" \
      ${CONFIG:+--command-config "$CONFIG"}
  fi
fi
step validate validate "$day/snapshot" &
validating=$!
if [ -z "${SPARK_REMOTE:-}" ]; then validated; fi # two Sparks may be more than fits
step assign assign "$day/snapshot" --output "$day/plan" --overwrite
if [ -n "$before" ]; then
  step diff diff "$before/snapshot" "$day/snapshot"
fi
validated
step report report "$day/plan" --output "$day/report.html" --overwrite

found=
for what in snapshot validate assign diff report; do
  if [ -e "$day/.$what.found" ]; then found="$found $what"; fi
done
if [ -n "$found" ]; then
  echo "$name: to look at:$found; see $day/report.html"
  exit 1
fi
echo "$name: nothing to look at; the report is $day/report.html"
