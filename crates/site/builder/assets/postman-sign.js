// Signs the request. The secret is a variable of your environment and is not sent.
(() => { // a function scope, because some versions of Postman define a global CryptoJS
  const CryptoJS = require('crypto-js');

  const unreserved = /[A-Za-z0-9\-._~]/;

  // Decodes each name and value, encodes it canonically, and sorts the pairs.
  function canonicalQuery(raw) {
    const recode = (part) => {
      const bytes = part.replace(/\+/g, '%20').replace(/%([0-9A-Fa-f]{2})|([^%])/gu, (whole, hex) =>
        hex ? String.fromCharCode(parseInt(hex, 16)) : unescape(encodeURIComponent(whole)));
      return bytes.replace(/[^]/g, (byte) =>
        unreserved.test(byte) ? byte : '%' + byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0'));
    };
    return raw.split('&').filter((piece) => piece !== '')
      .map((piece) => {
        const [name, ...value] = piece.split('=');
        return [recode(name), recode(value.join('='))];
      })
      .sort(([a, b], [c, d]) => (a < c ? -1 : a > c ? 1 : b < d ? -1 : b > d ? 1 : 0))
      .map((pair) => pair.join('=')).join('&');
  }

  // Variables are replaced here, so that the signed and the sent values are the same.
  pm.variables.set('external_id', `postman-${require('uuid').v4()}`);
  const path = pm.variables.replaceIn(pm.request.url.getPath());
  const query = pm.variables.replaceIn(pm.request.url.getQueryString());
  const body = pm.request.body && pm.request.body.raw ? pm.variables.replaceIn(pm.request.body.raw) : '';
  if (body !== '') pm.request.body.update({ ...pm.request.body.toJSON(), raw: body });

  const timestamp = Math.floor(Date.now() / 1000).toString();
  const nonce = CryptoJS.lib.WordArray.random(16).toString();
  const canonical = [pm.request.method, path, canonicalQuery(query), timestamp, nonce, CryptoJS.SHA256(body).toString()].join('\n');
  const signature = CryptoJS.HmacSHA256(canonical, pm.variables.get('secret')).toString();
  for (const [key, value] of Object.entries({
    'X-Partner-Key-Id': pm.variables.get('key_id'),
    'X-Partner-Timestamp': timestamp,
    'X-Partner-Nonce': nonce,
    'X-Partner-Signature': `sha256=${signature}`,
  })) pm.request.headers.upsert({ key, value });
})();
