#!/usr/bin/env bash
# Runs the curl sample's functions over spec/signing-vectors.json; names each vector that does not match.

folder=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
source "$folder/partner.sh"
vectors=${1:-$folder/../../spec/signing-vectors.json}
[[ -r $vectors ]] || fail "cannot read $vectors"
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
failures=0

# Sets REPLY to the text of a JSON string.
json_text() {
  local rest=${1#\"} out=
  rest=${rest%\"}
  while [[ $rest == *\\* ]]; do
    out+=${rest%%\\*}
    rest=${rest#*\\}
    case ${rest:0:1} in
      '"' | '/' | \\) out+=${rest:0:1} ;;
      n) out+=$'\n' ;;
      r) out+=$'\r' ;;
      t) out+=$'\t' ;;
      *) fail "this check cannot read the JSON escape \\${rest:0:1}" ;;
    esac
    rest=${rest:1}
  done
  REPLY=$out$rest
}

expect() { # FIELD GOT EXPECTED
  if [[ $2 != "$3" ]]; then
    printf '%s: %s: %s: got %q, not %q\n' "$list" "$name" "$1" "$2" "$3" >&2
    failures=$((failures + 1))
  fi
}

check_query_vectors() {
  [[ -n $raw_base64 ]] && raw=$(printf '%s' "$raw_base64" | openssl base64 -d -A)
  expect canonical_query "$(canonical_query "$raw" 2>&1)" "$canonical_query"
}

check_rejected_queries() {
  local message
  if message=$(canonical_query "$raw" 2>&1); then
    expect offset "none, but $message" "$offset"
  else
    [[ $message =~ byte\ ([0-9]+) ]] && message=${BASH_REMATCH[1]}
    expect offset "$message" "$offset"
  fi
}

check_request_vectors() {
  local query= canonical
  if [[ -n $body_base64 ]]; then
    printf '%s' "$body_base64" | openssl base64 -d -A >"$scratch/body"
  else
    printf '%s' "$body" >"$scratch/body"
  fi
  [[ $target == *'?'* ]] && query=${target#*'?'}
  canonical=$(canonical_string "$method" "$target" "$timestamp" "$nonce" "$scratch/body" 2>&1)
  expect canonical_query "$(canonical_query "$query" 2>&1)" "$canonical_query"
  expect body_sha256 "$(sha256 <"$scratch/body")" "$body_sha256"
  expect canonical_string "$canonical" "$canonical_string"
  expect signature "$(sign "$secret" "$canonical" 2>&1)" "$signature"
}

# The lists stand at depth 2, their vectors at depth 3; the fields of a vector become variables of the same name.
fields=(name raw raw_base64 canonical_query error offset secret method target timestamp nonce body body_base64
  body_sha256 canonical_string signature)
depth=0 colon='' key='' list='' done_lists='' count=0
while IFS= read -r token; do
  case $token in
    '{' | '[')
      depth=$((depth + 1)) colon=
      if ((depth == 2)); then list=$key count=0; fi
      if ((depth == 3)); then for field in "${fields[@]}"; do printf -v "$field" ''; done; fi ;;
    '}' | ']')
      if ((depth == 3)); then
        [[ $(type -t "check_$list") == function ]] || fail "$vectors has a list this check does not know: $list"
        "check_$list"
        count=$((count + 1))
      elif ((depth == 2)); then
        ((count > 0)) || fail "$vectors has no $list"
        echo "$list: $count checked"
        done_lists+=" $list"
      fi
      depth=$((depth - 1)) key='' ;;
    ':') colon=yes ;;
    ',') key='' colon='' ;;
    *)
      json_text "$token"
      if [[ -z $colon ]]; then
        key=$REPLY
      elif ((depth == 3)); then
        [[ " ${fields[*]} " == *" $key "* ]] || fail "$vectors has a field this check does not know: $key"
        printf -v "$key" '%s' "$REPLY"
      fi ;;
  esac
done < <(json_tokens "$vectors")

for list in query_vectors rejected_queries request_vectors; do
  [[ " $done_lists " == *" $list "* ]] || fail "$vectors has no $list"
done
((failures == 0))
