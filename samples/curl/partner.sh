#!/usr/bin/env bash
# A signed request to the partner API with bash, openssl and curl, and nothing else.
#
# The functions up to `signed_headers` are what an integration needs; the rest is a small command line around them.
#
# The secret never stands on a command line, where every user of the machine could read it in the list of processes.
# `openssl dgst -hmac KEY` and `openssl mac -macopt key:KEY` would put it there, and neither reads a key from a file or
# a pipe. So HMAC is put together here from two plain SHA-256 (RFC 2104), fed through pipes by bash's own printf.

set -u -o pipefail
export LC_ALL=C # a character is a byte, and `<` compares bytes

# CANONICAL_QUERY of the raw query $1 (what follows the first `?`): decoded once, encoded one way, sorted as pairs.
# A % that is not followed by two hexadecimal digits has no canonical form: status 1 and a message.
canonical_query() {
  local rest=$1 at=0 byte code piece pairs=() pair sorted i joined=
  local name= value= field=name in_piece=
  while :; do
    byte=${rest:0:1}
    if [[ -z $byte || $byte == '&' ]]; then # the end of a piece
      # A space is below every character that a name can have: pairs compare by name, then by value.
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
      code=$((code & 255)) rest=${rest:1} at=$((at + 1)) # some versions of bash give a negative number
    fi
    printf -v piece '%%%02X' "$code"
    case $piece in # A-Z a-z 0-9 - . _ ~ stay as they are
      %3[0-9] | %4[1-9A-F] | %5[0-9A] | %6[1-9A-F] | %7[0-9A] | %2D | %2E | %5F | %7E)
        printf -v piece '%b' "\\x${piece:1}" ;;
    esac
    if [[ $field == name ]]; then name+=$piece; else value+=$piece; fi
  done

  sorted=() # by insertion: a query has few pairs
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

# Lower-case hex SHA-256 of standard input.
sha256() {
  local line
  line=$(openssl dgst -sha256 -r) && printf '%s' "${line%% *}"
}

# The text that is signed. $2 is the path and query exactly as sent, $5 a file with the body's exact bytes.
canonical_string() { # METHOD TARGET TIMESTAMP NONCE BODY-FILE
  local query= digest
  [[ $2 == *'?'* ]] && query=${2#*'?'}
  query=$(canonical_query "$query") && digest=$(sha256 <"$5") || return 1
  printf '%s\n%s\n%s\n%s\n%s\n%s' "$(tr a-z A-Z <<<"$1")" "${2%%'?'*}" "$query" "$3" "$4" "$digest"
}

# The signature header's value. The HMAC key is the secret's 32 characters themselves, not their decoding.
sign() { # SECRET CANONICAL-STRING
  local i code byte inner_pad= outer_pad= inner
  if [[ ! $1 =~ ^[A-Z2-7]{32}$ ]]; then
    echo "a secret is 32 characters of A-Z and 2-7" >&2
    return 1
  fi
  for ((i = 0; i < 64; i++)); do # the key, padded with zeros to SHA-256's block of 64 bytes
    code=0
    ((i < ${#1})) && printf -v code '%d' "'${1:i:1}"
    printf -v byte '\\x%02x' $((code ^ 0x36)) && inner_pad+=$byte
    printf -v byte '\\x%02x' $((code ^ 0x5c)) && outer_pad+=$byte
  done
  inner=$({ printf "$inner_pad" && printf '%s' "$2"; } | sha256) || return 1
  printf 'sha256='
  printf "$outer_pad$(hex_escapes "$inner")" | sha256
}

# Hex digits as escapes for printf: 00ff becomes \x00\xff.
hex_escapes() {
  local i
  for ((i = 0; i < ${#1}; i += 2)); do printf '\\x%s' "${1:i:2}"; done
}

# The four headers of a request, a line each. Call it again for each retry: a nonce is good for one request only.
signed_headers() { # KEY-ID SECRET METHOD TARGET BODY-FILE
  local timestamp nonce canonical signature
  timestamp=$(date +%s) && nonce=$(openssl rand -hex 16) || return 1
  canonical=$(canonical_string "$3" "$4" "$timestamp" "$nonce" "$5") || return 1
  signature=$(sign "$2" "$canonical") || return 1
  printf 'X-Partner-Key-Id: %s\nX-Partner-Timestamp: %s\nX-Partner-Nonce: %s\nX-Partner-Signature: %s\n' \
    "$1" "$timestamp" "$nonce" "$signature"
}

# The target with spaces, controls, `#` and non-ASCII bytes percent-encoded: what is signed must be what is sent.
sendable() {
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

usage() {
  cat <<'TEXT'
usage: partner.sh [--sandbox PATH [--partner NAME]] METHOD TARGET [BODY-FILE]

Sends one signed request: the status line goes to stderr, the body to stdout.

  METHOD          GET or POST
  TARGET          path and query, from /api/v1/partner/...
  BODY-FILE       file with the JSON body; - reads stdin
  --sandbox PATH  take base URL and key from this sandbox.json
  --partner NAME  which of its partners (default: alpha)

examples:
  export PARTNER_BASE_URL=http://127.0.0.1:8080 PARTNER_KEY_ID=vip_test_... PARTNER_SECRET=...
  partner.sh GET /api/v1/partner/health
  partner.sh GET '/api/v1/partner/inspections?status=published&limit=5'
  partner.sh POST /api/v1/partner/test-line/measurements measurement.json
  partner.sh --sandbox .sandbox/sandbox.json --partner alpha GET /api/v1/partner/organizations

exit code: 0 for an answer of 2xx, 1 for any other answer, 2 when nothing was sent or no answer came
TEXT
}

fail() {
  echo "partner.sh: $*" >&2
  exit 2
}

# The tokens of a JSON file, a line each.
json_tokens() {
  grep -oE '"([^"\\]|\\.)*"|[][{},:]|[^][{},:"[:space:]]+' "$1"
}

# Sets base_url, key_id and secret from a sandbox.json: {"base_url": ..., "partners": [{"name": ..., ...}, ...]}.
read_sandbox() { # PATH PARTNER
  local token depth=0 key= colon= partners= name= id= text= found=
  [[ -r $1 ]] || fail "cannot read $1"
  while IFS= read -r token; do
    case $token in
      '{' | '[')
        depth=$((depth + 1)) colon=
        [[ $depth == 2 && $token == '[' && $key == '"partners"' ]] && partners=yes
        [[ $depth == 3 ]] && name= id= text= ;;
      '}' | ']')
        if [[ $depth == 3 && -n $partners && $name == "\"$2\"" ]]; then key_id=$id secret=$text found=yes; fi
        [[ $depth == 2 ]] && partners=
        depth=$((depth - 1)) key= ;;
      ':') colon=yes ;;
      ',') key= colon= ;;
      *)
        if [[ -z $colon ]]; then
          key=$token
        else
          case $depth$key in
            '1"base_url"') base_url=${token//\"/} ;;
            '3"name"') name=$token ;;
            '3"key_id"') id=${token//\"/} ;;
            '3"secret"') text=${token//\"/} ;;
          esac
        fi ;;
    esac
  done < <(json_tokens "$1")
  [[ -n $found ]] || fail "$1 has no partner $2"
}

main() {
  local sandbox= partner=alpha arguments=()
  local base_url=${PARTNER_BASE_URL:-} key_id=${PARTNER_KEY_ID:-} secret=${PARTNER_SECRET:-}
  unset PARTNER_SECRET # no program started from here need inherit it
  while (($# > 0)); do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --sandbox | --partner)
        (($# > 1)) || fail "$1 needs a value"
        if [[ $1 == --sandbox ]]; then sandbox=$2; else partner=$2; fi
        shift ;;
      --*) fail "there is no option $1; see --help" ;;
      *) arguments+=("$1") ;;
    esac
    shift
  done
  ((${#arguments[@]} == 2 || ${#arguments[@]} == 3)) || fail "give METHOD TARGET [BODY-FILE]; see --help"
  local method target
  method=$(tr a-z A-Z <<<"${arguments[0]}")
  target=$(sendable "${arguments[1]}")
  [[ $target == /* ]] || fail "the target begins with a slash and has no host"

  if [[ -n $sandbox ]]; then
    read_sandbox "$sandbox" "$partner"
  elif [[ -z $base_url || -z $key_id || -z $secret ]]; then
    fail "set PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET, or name a sandbox with --sandbox"
  fi
  base_url=${base_url%/}
  [[ $base_url =~ ^https?://[^/?#]+$ ]] || fail "the base URL is a scheme and a host, as in http://127.0.0.1:8080"

  scratch=$(mktemp -d) || fail "cannot make a temporary folder"
  trap 'rm -rf "$scratch"' EXIT
  : >"$scratch/body"
  if ((${#arguments[@]} == 3)); then
    # A copy, so that what is signed and what is sent are the same bytes.
    cat -- "${arguments[2]}" >"$scratch/body" || fail "cannot read the body"
  fi

  # --path-as-is and --globoff: curl must send the target as it was signed.
  local options=(--silent --show-error --path-as-is --globoff --max-time 60 --output - --dump-header "$scratch/headers")
  if [[ $method == HEAD ]]; then options+=(--head); else options+=(--request "$method"); fi
  if [[ -s $scratch/body ]]; then
    options+=(--header 'Content-Type: application/json' --header 'Expect:' --data-binary "@$scratch/body")
  fi
  signed_headers "$key_id" "$secret" "$method" "$target" "$scratch/body" >"$scratch/signed" || fail "not signed"
  curl "${options[@]}" --header "@$scratch/signed" "$base_url$target" || fail "no answer"

  local line status= request_id=-
  while IFS= read -r line; do
    line=${line%$'\r'}
    case $line in
      HTTP/*) status=$line ;;
      [Xx]-[Rr]equest-[Ii]d:*) request_id=${line#*: } ;;
    esac
  done <"$scratch/headers"
  printf '%s\nX-Request-Id: %s\n' "$status" "$request_id" >&2
  [[ $status =~ ^HTTP/[0-9.]+\ 2[0-9][0-9] ]]
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  main "$@" || exit 1
fi
