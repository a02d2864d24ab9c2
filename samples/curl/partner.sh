#!/usr/bin/env bash
# Signed requests to the partner API, with only bash (4 or newer), openssl and curl.
#
# The secret is never an argument, because every user of the machine can read the arguments of all processes.
# `openssl dgst -hmac KEY` and `openssl mac -macopt key:KEY` take the key only as an argument. The script therefore computes
# the HMAC from two SHA-256 digests (RFC 2104), whose input comes from bash's built-in printf through pipes.

set -u -o pipefail
export LC_ALL=C # a character is a byte, and `<` compares bytes

# Prints the CANONICAL_QUERY of the raw query $1 (after the first `?`): decoded, encoded canonically, sorted as pairs.
# Fails with status 1 and a message if a % is not followed by two hexadecimal digits.
canonical_query() {
  local rest=$1 at=0 byte code piece pairs=() pair sorted i joined=
  local name= value= field=name in_piece=
  while :; do
    byte=${rest:0:1}
    if [[ -z $byte || $byte == '&' ]]; then # the end of a piece
      # A space sorts before every character of an encoded name, so pairs compare by name and then by value.
      [[ -n $in_piece ]] && pairs+=("$name $value")
      [[ -z $byte ]] && break
      name= value= field=name in_piece=
      rest=${rest:1} at=$((at + 1))
      continue
    fi
    in_piece=yes
    if [[ $byte == '=' && $field == name ]]; then
      field=value rest=${rest:1} at=$((at + 1))
      continue
    fi
    if [[ $byte == '%' ]]; then
      if [[ ! ${rest:1:2} =~ ^[0-9A-Fa-f][0-9A-Fa-f]$ ]]; then
        echo "the query's % at byte $at is not followed by two hexadecimal digits; write it as %25" >&2
        return 1
      fi
      code=$((16#${rest:1:2})) rest=${rest:3} at=$((at + 3))
    else
      [[ $byte == '+' ]] && byte=' '
      printf -v code '%d' "'$byte"
      code=$((code & 255)) rest=${rest:1} at=$((at + 1)) # some versions of bash print a negative number
    fi
    printf -v piece '%%%02X' "$code"
    case $piece in # A-Z a-z 0-9 - . _ ~ are not escaped
      %3[0-9] | %4[1-9A-F] | %5[0-9A] | %6[1-9A-F] | %7[0-9A] | %2D | %2E | %5F | %7E)
        printf -v piece '%b' "\\x${piece:1}" ;;
    esac
    if [[ $field == name ]]; then name+=$piece; else value+=$piece; fi
  done

  sorted=() # insertion sort, because a query has few pairs
  for pair in ${pairs[@]+"${pairs[@]}"}; do
    for ((i = ${#sorted[@]}; i > 0; i--)); do
      [[ $pair < ${sorted[i - 1]} ]] || break
      sorted[i]=${sorted[i - 1]}
    done
    sorted[i]=$pair
  done
  for pair in ${sorted[@]+"${sorted[@]}"}; do joined+="&${pair/ /=}"; done
  printf '%s' "${joined#&}"
}

# Prints the SHA-256 of standard input in lower-case hex.
sha256() {
  local line
  line=$(openssl dgst -sha256 -r) && printf '%s' "${line%% *}"
}

# Prints the text that is signed. $2 is the path and query as sent, $5 a file with the exact bytes of the body.
canonical_string() { # METHOD TARGET TIMESTAMP NONCE BODY-FILE
  local query= digest
  [[ $2 == *'?'* ]] && query=${2#*'?'}
  query=$(canonical_query "$query") && digest=$(sha256 <"$5") || return 1
  printf '%s\n%s\n%s\n%s\n%s\n%s' "$(tr a-z A-Z <<<"$1")" "${2%%'?'*}" "$query" "$3" "$4" "$digest"
}

# Prints the value of the signature header. The HMAC key is the secret's 32 characters, not decoded.
sign() { # SECRET CANONICAL-STRING
  local i code byte inner= outer=
  if [[ ! $1 =~ ^[A-Z2-7]{32}$ ]]; then
    echo "the secret must have 32 characters of A-Z and 2-7" >&2
    return 1
  fi
  for ((i = 0; i < 64; i++)); do # the key, padded with zeros to the 64-byte block of SHA-256
    code=0
    ((i < ${#1})) && printf -v code '%d' "'${1:i:1}"
    printf -v byte '\\x%02x' $((code ^ 0x36)) && inner+=$byte
    printf -v byte '\\x%02x' $((code ^ 0x5c)) && outer+=$byte
  done
  printf 'sha256='
  { printf "$outer" && { printf "$inner" && printf '%s' "$2"; } | openssl dgst -sha256 -binary; } | sha256
}

# Prints the four headers of one attempt, one per line. Each attempt needs a new nonce and signature.
signed_headers() { # KEY-ID SECRET METHOD TARGET BODY-FILE
  local timestamp nonce canonical signature
  timestamp=$(date +%s) && nonce=$(openssl rand -hex 16) || return 1
  canonical=$(canonical_string "$3" "$4" "$timestamp" "$nonce" "$5") || return 1
  signature=$(sign "$2" "$canonical") || return 1
  printf 'X-Partner-Key-Id: %s\nX-Partner-Timestamp: %s\nX-Partner-Nonce: %s\nX-Partner-Signature: %s\n' \
    "$1" "$timestamp" "$nonce" "$signature"
}

# Prints the target with spaces, control characters, `#` and non-ASCII bytes percent-encoded, so that the signed and the sent
# target are equal.
encode_target() {
  local i byte code out=
  for ((i = 0; i < ${#1}; i++)); do
    byte=${1:i:1}
    printf -v code '%d' "'$byte"
    code=$((code & 255))
    if ((code < 33 || code > 126)) || [[ $byte == '#' ]]; then printf -v byte '%%%02X' "$code"; fi
    out+=$byte
  done
  printf '%s' "$out"
}

attempts=4
longest_wait=120 # seconds; a response with a longer Retry-After is returned instead

# Succeeds if a request can be retried safely when its outcome is unknown. A measurement needs an external_id.
is_repeatable() { # METHOD BODY-FILE
  [[ $1 == GET ]] || grep -aqE '"external_id"[[:space:]]*:[[:space:]]*"[^"]' "$2"
}

# Signs and sends a request once. Sets `status` and writes the headers and the body to $scratch. Fails without a response.
attempt() { # METHOD TARGET BODY-FILE
  # --path-as-is and --globoff keep the target as it was signed.
  local options=(--silent --show-error --path-as-is --globoff --max-time 60 --request "$1")
  if [[ -s $3 ]]; then options+=(--header 'Content-Type: application/json' --header 'Expect:' --data-binary "@$3"); fi
  signed_headers "$key_id" "$secret" "$1" "$2" "$3" >"$scratch/signed" || fail "failed to sign the request"
  status=$(curl "${options[@]}" --header "@$scratch/signed" --dump-header "$scratch/headers" --output "$scratch/response" \
    --write-out '%{http_code}' "$base_url$2" 2>"$scratch/problem")
}

# Sets REPLY to the value of a header of the response.
response_header() { # NAME
  local line
  while IFS= read -r line; do
    line=${line%$'\r'}
    [[ ${line%%:*} =~ ^$1$ ]] && REPLY=${line#*:} && REPLY=${REPLY# } && return
  done <"$scratch/headers"
  REPLY=
}

# Sends a request at most four times. After 408 or 429 it always retries, because the request was not processed. After 500, 502,
# 503, 504 or without a response it retries only if that is safe.
send() { # METHOD TARGET BODY-FILE
  local tries repeatable= wait problem status again
  is_repeatable "$1" "$3" && repeatable=yes
  for ((tries = 1; ; tries++)); do
    wait=$(((1 << (tries - 1)) * (500 + RANDOM % 500))) # milliseconds
    if attempt "$@"; then
      problem=$status again=
      case $status in
        408 | 429) again=yes ;;
        500 | 502 | 503 | 504) again=$repeatable ;;
      esac
      response_header '[Rr]etry-[Aa]fter'
      [[ $REPLY =~ ^[0-9]{1,9}$ ]] && wait=$((10#$REPLY * 1000))
    else
      problem="no response ($(<"$scratch/problem"))" status='' again=$repeatable
    fi
    if ((tries == attempts || wait > longest_wait * 1000)) || [[ -z $again ]]; then
      [[ -n $status ]] || fail "$problem"
      break
    fi
    printf -v wait '%d.%03d' $((wait / 1000)) $((wait % 1000))
    echo "$problem; retrying in $wait s" >&2
    sleep "$wait"
  done
  response_header '[Xx]-[Rr]equest-[Ii]d'
  IFS= read -r problem <"$scratch/headers"
  printf '%s\nX-Request-Id: %s\n' "${problem%$'\r'}" "${REPLY:--}" >&2
  cat "$scratch/response"
  skipped_points
  response_header '[Xx]-[Ii]dempotency-[Pp]ayload-[Mm]ismatch'
  if [[ $REPLY == true ]]; then
    echo "not recorded: this external_id was already used for another measurement; send it with a new one" >&2
    return 1
  fi
  [[ $status == 2?? ]]
}

# Prints the points of a measurement that were not written to the report.
skipped_points() {
  local list point code reason
  list=$(grep -oE '"skipped_points" *: *\[[^]]*\]' "$scratch/response") || return 0
  while [[ $list =~ \{([^}]*)\}(.*) ]]; do
    point=${BASH_REMATCH[1]} list=${BASH_REMATCH[2]} code='' reason=''
    [[ $point =~ \"code\"\ *:\ *\"([^\"]*)\" ]] && code=${BASH_REMATCH[1]}
    [[ $point =~ \"reason\"\ *:\ *\"([^\"]*)\" ]] && reason=${BASH_REMATCH[1]}
    echo "not written: $code ($reason)" >&2
  done
}

# Checks the functions above with signing-vectors.json and prints each vector that does not match.
check() { # FILE
  local fields=(name raw raw_base64 canonical_query error offset secret method target timestamp nonce body body_base64
    body_sha256 canonical_string signature)
  local "${fields[@]}" depth=0 colon='' key='' list='' count=0 field token failures=0
  [[ -r $1 ]] || fail "failed to read $1"
  # The lists are at depth 2 and their vectors at depth 3. The fields of a vector become variables with the same names.
  while IFS= read -r token; do
    case $token in
      '{' | '[')
        depth=$((depth + 1)) colon=
        if ((depth == 2)); then list=$key count=0; fi
        if ((depth == 3)); then for field in "${fields[@]}"; do printf -v "$field" ''; done; fi ;;
      '}' | ']')
        if ((depth == 3)); then "check_$list" && count=$((count + 1)); fi
        if ((depth == 2)); then echo "$list: $count checked"; fi
        depth=$((depth - 1)) key='' ;;
      ':') colon=yes ;;
      ',') key='' colon='' ;;
      *)
        json_text "$token"
        if [[ -z $colon ]]; then key=$REPLY; elif ((depth == 3)); then printf -v "$key" '%s' "$REPLY"; fi ;;
    esac
  done < <(grep -oE '"([^"\\]|\\.)*"|[][{},:]|[^][{},:"[:space:]]+' "$1")
  ((failures == 0))
}

# Sets REPLY to the text of a JSON string.
json_text() {
  local rest=${1#\"} out=
  rest=${rest%\"}
  while [[ $rest == *\\* ]]; do
    out+=${rest%%\\*}
    rest=${rest#*\\}
    case ${rest:0:1} in
      n) out+=$'\n' ;;
      r) out+=$'\r' ;;
      t) out+=$'\t' ;;
      '"' | '/' | \\) out+=${rest:0:1} ;;
      *) fail "the JSON escape \\${rest:0:1} is not supported" ;;
    esac
    rest=${rest:1}
  done
  REPLY=$out$rest
}

expect() { # FIELD GOT EXPECTED
  [[ $2 == "$3" ]] && return
  printf '%s: %s: got %q, expected %q\n' "$name" "$1" "$2" "$3" >&2
  failures=$((failures + 1))
}

check_query_vectors() {
  [[ -n $raw_base64 ]] && raw=$(printf '%s' "$raw_base64" | openssl base64 -d -A)
  expect canonical_query "$(canonical_query "$raw" 2>&1)" "$canonical_query"
}

check_rejected_queries() {
  local message
  message=$(canonical_query "$raw" 2>&1) && message="no error, but $message"
  [[ $message =~ byte\ ([0-9]+) ]] && message=${BASH_REMATCH[1]}
  expect offset "$message" "$offset"
}

check_request_vectors() {
  local canonical
  printf '%s' "$body" >"$scratch/body"
  [[ -n $body_base64 ]] && printf '%s' "$body_base64" | openssl base64 -d -A >"$scratch/body"
  canonical=$(canonical_string "$method" "$target" "$timestamp" "$nonce" "$scratch/body" 2>&1)
  expect canonical_string "$canonical" "$canonical_string"
  expect signature "$(sign "$secret" "$canonical" 2>&1)" "$signature"
}

fail() {
  echo "partner.sh: $*" >&2
  exit 2
}

main() {
  local base_url=${PARTNER_BASE_URL:-} key_id=${PARTNER_KEY_ID:-} secret=${PARTNER_SECRET:-} method target
  unset PARTNER_SECRET # child processes must not inherit it
  scratch=$(mktemp -d) || fail "failed to create a temporary folder"
  trap 'rm -rf "$scratch"' EXIT
  if [[ $# == 2 && $1 == --check ]]; then
    check "$2"
    return
  fi
  if (($# < 2 || $# > 3)) || [[ $1 == -* ]]; then
    echo "usage: partner.sh METHOD TARGET [BODY-FILE]   (- reads the body from standard input)" >&2
    echo "       partner.sh --check signing-vectors.json" >&2
    exit 2
  fi
  method=$(tr a-z A-Z <<<"$1")
  target=$(encode_target "$2")
  [[ $target == /* ]] || fail "the target must begin with a slash and have no host"
  [[ -n $base_url && -n $key_id && -n $secret ]] || fail "set PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET"
  base_url=${base_url%/}
  [[ $base_url =~ ^https?://[^/?#]+$ ]] || fail "the base URL must be a scheme and a host, as in http://127.0.0.1:8080"
  : >"$scratch/body"
  if (($# == 3)); then cat -- "$3" >"$scratch/body" || fail "failed to read the body"; fi
  send "$method" "$target" "$scratch/body"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  main "$@" || exit 1
fi
