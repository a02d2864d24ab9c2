# Signed requests to the partner API, for Windows PowerShell 5.1 and PowerShell 7.
#
#   $env:PARTNER_BASE_URL = '...'; $env:PARTNER_KEY_ID = '...'; $env:PARTNER_SECRET = '...'
#   .\partner.ps1 GET '/api/v1/partner/inspections?limit=5'
#   .\partner.ps1 POST /api/v1/partner/test-line/measurements body.json
#
# A pipeline of PowerShell does not keep the bytes of a text, so the body is read from a file. To call the functions from a
# script, run `. .\partner.ps1` first: see Send-PartnerRequest.

Add-Type -AssemblyName System.Net.Http
$PartnerAttempts = 4
$PartnerLongestWait = 120 # seconds; a response with a longer Retry-After is returned instead
$Latin1 = [Text.Encoding]::GetEncoding(28591) # one character per byte

# Replaces the characters that match the pattern, each a byte, with %XX.
function ConvertTo-PercentEncoding([string]$Text, [string]$Pattern) {
    [regex]::Replace($Text, $Pattern, { param($found) '%{0:X2}' -f [int][char]$found.Value })
}

# Decodes a part of a query, and encodes it canonically. ([Uri]::EscapeDataString differs between versions of .NET.)
function ConvertTo-CanonicalPart([string]$Part) {
    $decoded = [regex]::Replace($Part.Replace('+', ' '), '%([0-9A-Fa-f]{2})', {
        param($found) [string][char][Convert]::ToInt32($found.Groups[1].Value, 16)
    })
    ConvertTo-PercentEncoding $decoded '[^A-Za-z0-9._~-]'
}

# Returns the byte offset of the first % that is not followed by two hexadecimal digits, or -1.
function Find-MalformedEscape([byte[]]$Raw) {
    $malformed = [regex]::Match($Latin1.GetString($Raw), '%(?![0-9A-Fa-f]{2})')
    if ($malformed.Success) { $malformed.Index } else { -1 }
}

# Returns the CANONICAL_QUERY of a raw query (the bytes after the first `?`): decoded, encoded canonically, sorted as pairs.
function Get-CanonicalQuery([byte[]]$Raw) {
    $offset = Find-MalformedEscape $Raw
    if ($offset -ge 0) {
        throw [FormatException]"the query's % at byte $offset is not followed by two hexadecimal digits; write it as %25"
    }
    $pairs = New-Object 'System.Collections.Generic.List[string]'
    foreach ($piece in $Latin1.GetString($Raw).Split('&')) {
        if ($piece -eq '') { continue }
        $name, $value = $piece -split '=', 2
        # An encoded part contains no NUL, so the texts are in the order of their names, then of their values.
        $pairs.Add((ConvertTo-CanonicalPart $name) + "`0" + (ConvertTo-CanonicalPart $value))
    }
    $pairs.Sort([StringComparer]::Ordinal)
    ($pairs -join '&').Replace("`0", '=')
}

function ConvertTo-Hex([byte[]]$Bytes) {
    [BitConverter]::ToString($Bytes).Replace('-', '').ToLowerInvariant()
}

# Returns the text that is signed. $Target is the path and query as sent, $Body the exact bytes.
function Get-CanonicalString([string]$Method, [string]$Target, [string]$Timestamp, [string]$Nonce, [byte[]]$Body) {
    $path, $query = $Target.Split([char[]]'?', 2)
    $sha256 = [Security.Cryptography.SHA256]::Create()
    $canonical = Get-CanonicalQuery ([Text.Encoding]::UTF8.GetBytes([string]$query))
    $digest = ConvertTo-Hex $sha256.ComputeHash($Body)
    ($Method.ToUpperInvariant(), $path, $canonical, $Timestamp, $Nonce, $digest) -join "`n"
}

# Returns the value of the signature header. The HMAC key is the secret's 32 characters, not decoded.
function Get-Signature([string]$Secret, [string]$Canonical) {
    $hmac = New-Object Security.Cryptography.HMACSHA256
    $hmac.Key = [Text.Encoding]::ASCII.GetBytes($Secret)
    'sha256=' + (ConvertTo-Hex $hmac.ComputeHash([Text.Encoding]::UTF8.GetBytes($Canonical)))
}

# Signs and sends a request once. Each attempt needs a new nonce and signature.
function Invoke-PartnerAttempt([Net.Http.HttpClient]$Client, [string]$Method, [Uri]$Address, [byte[]]$Body) {
    $random = New-Object byte[] 16
    [Security.Cryptography.RandomNumberGenerator]::Create().GetBytes($random)
    $nonce = ConvertTo-Hex $random
    $timestamp = [DateTimeOffset]::UtcNow.ToUnixTimeSeconds().ToString([Globalization.CultureInfo]::InvariantCulture)
    # Signs the target as Uri normalizes it, because that is sent.
    $canonical = Get-CanonicalString $Method $Address.PathAndQuery $timestamp $nonce $Body
    $request = New-Object Net.Http.HttpRequestMessage (New-Object Net.Http.HttpMethod $Method), $Address
    $request.Headers.Add('X-Partner-Key-Id', $env:PARTNER_KEY_ID)
    $request.Headers.Add('X-Partner-Timestamp', $timestamp)
    $request.Headers.Add('X-Partner-Nonce', $nonce)
    $request.Headers.Add('X-Partner-Signature', (Get-Signature $env:PARTNER_SECRET $canonical))
    if ($Body.Length -gt 0) {
        $request.Content = New-Object Net.Http.ByteArrayContent -ArgumentList (, $Body)
        [void]$request.Content.Headers.TryAddWithoutValidation('Content-Type', 'application/json')
    }
    $response = $Client.SendAsync($request).GetAwaiter().GetResult()
    $headers = @{}
    foreach ($header in $response.Headers) { $headers[$header.Key] = $header.Value -join ', ' }
    $bytes = $response.Content.ReadAsByteArrayAsync().GetAwaiter().GetResult()
    [pscustomobject]@{
        Status     = [int]$response.StatusCode
        Reason     = $response.ReasonPhrase
        RequestId  = $headers['X-Request-Id']
        RetryAfter = $headers['Retry-After']
        IsMismatch = $headers['X-Idempotency-Payload-Mismatch'] -eq 'true'
        Body       = $bytes
        Text       = [Text.Encoding]::UTF8.GetString($bytes)
    }
}

# Sends a request at most four times. After 408 or 429 it always retries, because the request was not processed. After 500, 502,
# 503, 504 or without a response it retries only if that is safe. $Body is a text or bytes. The base URL and the key are read from
# PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET.
function Send-PartnerRequest([string]$Method, [string]$Target, $Body = '') {
    foreach ($name in 'PARTNER_BASE_URL', 'PARTNER_KEY_ID', 'PARTNER_SECRET') {
        if (-not [Environment]::GetEnvironmentVariable($name)) { throw [ArgumentException]"set $name" }
    }
    if ($env:PARTNER_BASE_URL -notmatch '^https?://[^/?#]+/?$') {
        throw [ArgumentException]'the base URL must be a scheme and a host, as in http://127.0.0.1:8080'
    }
    if (-not $Target.StartsWith('/')) { throw [ArgumentException]'the target must begin with a slash and have no host' }
    [byte[]]$bytes = if ($Body -is [string]) { [Text.Encoding]::UTF8.GetBytes($Body) } else { $Body }
    if ($null -eq $bytes) { $bytes = New-Object byte[] 0 }
    $Method = $Method.ToUpperInvariant()
    # Encodes spaces, control characters, `#` and non-ASCII bytes.
    $encoded = ConvertTo-PercentEncoding $Latin1.GetString([Text.Encoding]::UTF8.GetBytes($Target)) '[^!-~]|#'
    $address = [Uri]($env:PARTNER_BASE_URL.TrimEnd('/') + $encoded)
    [void](Get-CanonicalString $Method $address.PathAndQuery '' '' $bytes) # throws for a malformed query before the first attempt
    $isRepeatable = $Method -eq 'GET' -or [regex]::IsMatch($Latin1.GetString($bytes), '"external_id"\s*:\s*"[^"]')

    $handler = New-Object Net.Http.HttpClientHandler
    $handler.AllowAutoRedirect = $false
    $client = New-Object Net.Http.HttpClient $handler
    $client.Timeout = [TimeSpan]::FromSeconds(60)
    # A new connection for each attempt: if a reused one breaks, .NET resends the same request, whose nonce may be consumed.
    $client.DefaultRequestHeaders.ConnectionClose = $true
    $client.DefaultRequestHeaders.ExpectContinue = $false
    for ($attempt = 1; ; $attempt++) {
        $wait = (Get-Random -Minimum 0.5 -Maximum 1.0) * [Math]::Pow(2, $attempt - 1)
        try {
            $response = Invoke-PartnerAttempt $client $Method $address $bytes
            $again = $response.Status -in 408, 429 -or ($isRepeatable -and $response.Status -in 500, 502, 503, 504)
            if ($response.RetryAfter -match '^[0-9]{1,9}$') { $wait = [double]$response.RetryAfter }
            if ($attempt -eq $PartnerAttempts -or -not $again -or $wait -gt $PartnerLongestWait) { return $response }
            $problem = "$($response.Status) $($response.Reason)"
        } catch {
            $cause = $_.Exception.GetBaseException()
            if (-not $isRepeatable -or $attempt -eq $PartnerAttempts) { throw $cause }
            $problem = "no response ($($cause.Message))"
        }
        [Console]::Error.WriteLine("$problem; retrying in $([int]($wait * 1000)) ms")
        Start-Sleep -Milliseconds ([int]($wait * 1000))
    }
}

# Checks the functions above with signing-vectors.json and prints each vector that does not match.
function Test-SigningVectors([string]$Path) {
    function Get-Octets($Vector, [string]$Field) {
        $base64 = $Vector."${Field}_base64"
        # The comma keeps an empty array from becoming nothing.
        if ($null -ne $base64) { return , [Convert]::FromBase64String($base64) }
        , [Text.Encoding]::UTF8.GetBytes($Vector.$Field)
    }
    $lists = [IO.File]::ReadAllText((Resolve-Path -LiteralPath $Path).ProviderPath) | ConvertFrom-Json
    $failures = 0
    foreach ($list in 'query_vectors', 'rejected_queries', 'request_vectors') {
        foreach ($vector in $lists.$list) {
            $got = @{}
            if ($list -eq 'request_vectors') {
                $body = Get-Octets $vector 'body'
                $got.canonical_string = Get-CanonicalString $vector.method $vector.target $vector.timestamp $vector.nonce $body
                $got.signature = Get-Signature $vector.secret $got.canonical_string
            } elseif ($list -eq 'query_vectors') {
                $got.canonical_query = Get-CanonicalQuery (Get-Octets $vector 'raw')
            } else {
                $got.offset = Find-MalformedEscape (Get-Octets $vector 'raw')
            }
            foreach ($field in $got.Keys) {
                if ([string]$got[$field] -ceq [string]$vector.$field) { continue }
                $failures++
                [Console]::Error.WriteLine("$($vector.name): ${field}: got $($got[$field]), expected $($vector.$field)")
            }
        }
        [Console]::Out.Write("${list}: $(@($lists.$list).Count) checked`n")
    }
    if ($failures -gt 0) { 1 } else { 0 }
}

function Invoke-PartnerCommandLine([string[]]$Arguments) {
    if ($Arguments.Count -eq 2 -and $Arguments[0] -eq '--check') { return Test-SigningVectors $Arguments[1] }
    if ($Arguments.Count -notin 2, 3 -or $Arguments[0].StartsWith('-')) {
        [Console]::Error.WriteLine("usage: partner.ps1 METHOD TARGET [BODY-FILE]")
        [Console]::Error.WriteLine("       partner.ps1 --check signing-vectors.json")
        return 2
    }
    try {
        $body = ''
        if ($Arguments.Count -eq 3) {
            $body = [IO.File]::ReadAllBytes((Resolve-Path -LiteralPath $Arguments[2] -ErrorAction Stop).ProviderPath)
        }
        $response = Send-PartnerRequest $Arguments[0] $Arguments[1] $body
    } catch {
        [Console]::Error.WriteLine("partner.ps1: $($_.Exception.GetBaseException().Message)")
        return 2
    }
    $requestId = if ($response.RequestId) { $response.RequestId } else { '-' }
    [Console]::Error.WriteLine("HTTP/1.1 $($response.Status) $($response.Reason)")
    [Console]::Error.WriteLine("X-Request-Id: $requestId")
    $output = [Console]::OpenStandardOutput()
    $output.Write($response.Body, 0, $response.Body.Length)
    $output.Flush()
    if ($response.Text.Contains('"skipped_points"')) {
        foreach ($point in ($response.Text | ConvertFrom-Json).data.skipped_points) {
            [Console]::Error.WriteLine("not written: $($point.code) ($($point.reason))")
        }
    }
    if ($response.IsMismatch) {
        $message = 'not recorded: this external_id was already used for another measurement; send it with a new one'
        [Console]::Error.WriteLine($message)
        return 1
    }
    if ($response.Status -ge 200 -and $response.Status -lt 300) { 0 } else { 1 }
}

# Does nothing else if the file was loaded with `. .\partner.ps1`.
if ($MyInvocation.InvocationName -ne '.') { exit (Invoke-PartnerCommandLine $args) }
