// A small renderer. Views describe elements; the existing DOM is updated in place, so focus, selection and scrolling stay.

const SVG = "http://www.w3.org/2000/svg";
/** Set as properties, because the attributes only hold a field's initial state. */
const PROPERTIES = new Set(["value", "checked", "disabled", "readOnly", "open", "multiple", "hidden", "innerText"]);

const isShown = (child) => child !== null && child !== undefined && child !== false && child !== true && child !== "";
const flat = (children) => [children].flat(Infinity).filter(isShown);

/**
 * Describes an element. `key` identifies it among its siblings when they move. `onmount` is called with the node after it has
 * been inserted. Other `on…` attributes are listeners.
 */
export function h(tag, attributes, ...children) {
  return { tag, attributes: attributes ?? {}, children: flat(children) };
}

/** Updates the content of `parent` to match `children`. */
export function render(parent, children) {
  const focused = document.activeElement;
  const mounted = [];
  patch(parent, flat(children), mounted);
  // A node that was moved has lost the focus.
  if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
  for (const [onmount, node] of mounted) onmount(node);
}

function patch(parent, wanted, mounted) {
  const keys = new Set(wanted.map((child) => child.attributes?.key).filter((key) => key !== undefined));
  const keyed = new Map();
  for (const node of [...parent.childNodes]) {
    if (node.key === undefined) continue;
    if (keys.has(node.key)) keyed.set(node.key, node);
    else node.remove();
  }
  let next = parent.firstChild;
  for (const child of wanted) {
    const key = child.attributes?.key;
    let node = key === undefined ? next : keyed.get(key);
    if (!node || !isLike(node, child, key)) {
      node = create(parent, child);
      parent.insertBefore(node, next);
      if (child.attributes?.onmount) mounted.push([child.attributes.onmount, node]);
    } else if (node === next) {
      next = next.nextSibling;
    } else {
      parent.insertBefore(node, next);
    }
    update(node, child, mounted);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

function isLike(node, child, key) {
  if (!child.tag) return node.nodeType === Node.TEXT_NODE;
  return node.localName === child.tag && node.key === key;
}

function create(parent, child) {
  if (!child.tag) return document.createTextNode("");
  const isSvg = child.tag === "svg" || (parent.namespaceURI === SVG && parent.localName !== "foreignObject");
  const node = isSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  node.key = child.attributes.key;
  node.shown = {};
  return node;
}

function update(node, child, mounted) {
  if (!child.tag) {
    const text = String(child);
    if (node.data !== text) node.data = text;
    return;
  }
  const { attributes } = child;
  for (const name of Object.keys(node.shown)) if (!(name in attributes)) set(node, name, undefined);
  // The value of a `select` must be one of its options, so it is set after they exist.
  for (const [name, value] of Object.entries(attributes)) if (name !== "value") set(node, name, value);
  node.shown = attributes;
  patch(node, child.children, mounted);
  if ("value" in attributes) set(node, "value", attributes.value);
}

function set(node, name, value) {
  if (name === "key" || name === "onmount") return;
  if (name.startsWith("on")) {
    node[name] = value ?? null;
  } else if (PROPERTIES.has(name) && name in node) {
    const wanted = value ?? (name === "value" ? "" : false);
    if (node[name] !== wanted) node[name] = wanted;
  } else if (value === undefined || value === null || value === false) {
    node.removeAttribute(name);
  } else {
    const text = value === true ? "" : String(value);
    if (node.getAttribute(name) !== text) node.setAttribute(name, text);
  }
}
