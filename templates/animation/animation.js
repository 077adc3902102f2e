// Plays the motions of a page that kanegen wrote. The viewer (k3d) draws; this script moves what it draws.

const byId = (id) => document.getElementById(id);

function bytes(text) {
  const binary = atob(text), result = new Uint8Array(binary.length);
  for (let k = 0; k < binary.length; k++) result[k] = binary.charCodeAt(k);
  return result;
}

const floats = (text) => new Float32Array(bytes(text).buffer);
const doubles = (text) => new Float64Array(bytes(text).buffer);

async function inflated(id) {
  const stream = new Blob([bytes(byId(id).textContent)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

// -- vectors and matrices: column by column, as in WebGL -----------------------------------------------------

const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const sum = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const unit = (a) => { const n = Math.hypot(...a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };

function product(out, a, b) {
  for (let j = 0; j < 16; j += 4)
    for (let i = 0; i < 4; i++)
      out[j + i] = a[i] * b[j] + a[4 + i] * b[j + 1] + a[8 + i] * b[j + 2] + a[12 + i] * b[j + 3];
  return out;
}

function fromPose(out, p, q) {
  const [x, y, z, w] = q;
  out[0] = 1 - 2 * (y * y + z * z); out[1] = 2 * (x * y + z * w); out[2] = 2 * (x * z - y * w); out[3] = 0;
  out[4] = 2 * (x * y - z * w); out[5] = 1 - 2 * (x * x + z * z); out[6] = 2 * (y * z + x * w); out[7] = 0;
  out[8] = 2 * (x * z + y * w); out[9] = 2 * (y * z - x * w); out[10] = 1 - 2 * (x * x + y * y); out[11] = 0;
  out[12] = p[0]; out[13] = p[1]; out[14] = p[2]; out[15] = 1;
  return out;
}

// The unit vector z becomes the vector from ``a`` of this length along ``d``; the other axes have the length ``r``.
function stretched(out, a, d, length, r) {
  const x = unit(cross(Math.abs(d[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], d)), y = cross(d, x);
  for (let i = 0; i < 3; i++) {
    out[i] = r * x[i]; out[4 + i] = r * y[i]; out[8 + i] = length * d[i]; out[12 + i] = a[i];
  }
  out[3] = out[7] = out[11] = 0; out[15] = 1;
  return out;
}

// -- tracks: positions and rotations between the pictures ----------------------------------------------------

class Motion {
  constructor(data) {
    this.label = data.label; this.color = data.color; this.center = data.center; this.offset = data.offset; this.items = data.items; this.marks = data.marks;
    this.times = doubles(data.times);
    this.tracks = data.tracks.map((track) => ({ p: floats(track.p), q: track.q ? floats(track.q) : null }));
    this.k = 0; this.w = 0;
  }
  // Finds the pictures before and after the time ``t``.
  seek(t) {
    const times = this.times;
    let low = 0, high = times.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (times[middle] <= t) low = middle; else high = middle; }
    const h = times[high] - times[low];
    this.k = low; this.next = high;
    this.w = h > 0 ? Math.min(1, Math.max(0, (t - times[low]) / h)) : 0;
  }
  position(index) {
    const p = this.tracks[index].p;
    if (p.length === 3) return [p[0], p[1], p[2]];
    const a = 3 * this.k, b = 3 * this.next, w = this.w;
    return [p[a] + w * (p[b] - p[a]), p[a + 1] + w * (p[b + 1] - p[a + 1]), p[a + 2] + w * (p[b + 2] - p[a + 2])];
  }
  rotation(index) {
    const q = this.tracks[index].q;
    if (!q) return [0, 0, 0, 1];
    if (q.length === 4) return [q[0], q[1], q[2], q[3]];
    const a = 4 * this.k, b = 4 * this.next, w = this.w, r = [0, 0, 0, 0];
    let n = 0;
    for (let i = 0; i < 4; i++) { r[i] = q[a + i] + w * (q[b + i] - q[a + i]); n += r[i] * r[i]; }
    for (let i = 0; i < 4; i++) r[i] /= Math.sqrt(n);
    return r;
  }
}

// -- drawing with the viewer, or with lines where there is no WebGL ------------------------------------------

function hasWebGL() {
  const canvas = document.createElement("canvas");
  try { return Boolean(canvas.getContext("webgl2")); } catch { return false; }
}

class Viewer {
  static async open(scene) {
    const viewer = new Viewer(), host = Object.assign(document.createElement("div"), { className: "stage" });
    byId("view").prepend(host);
    const code = await inflated("viewer-code");
    let library;
    new Function("define", code)((name, dependencies, factory) => { library = factory(); });
    viewer.k3d = await library.CreateK3DAndLoadBinarySnapshot(bytes(byId("viewer-plot").textContent).buffer, host);
    viewer.three = viewer.k3d.Provider.THREE;
    viewer.root = new viewer.three.Group();
    viewer.geometries = scene.meshes.map((mesh) => viewer.geometry(mesh));
    viewer.k3d.getWorld().K3DObjects.add(viewer.root);
    return viewer;
  }
  geometry(mesh) {
    const { BufferGeometry, BufferAttribute } = this.three, geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(floats(mesh.v), 3));
    geometry.setAttribute("color", new BufferAttribute(floats(mesh.c), 3));
    geometry.setIndex(new BufferAttribute(Uint32Array.from(floats(mesh.f)), 1));
    geometry.computeVertexNormals();
    geometry.computeBoundingBox();
    return geometry;
  }
  // ``onTop``: not hidden in bodies; ``flat``: in its color, whatever the light, such as a plane, which would be dark
  // where the light of the camera grazes it.
  addMesh(mesh, color, opacity, { onTop = false, flat = false } = {}) {
    const { Mesh, MeshBasicMaterial, MeshStandardMaterial, DoubleSide } = this.three;
    const look = { color, vertexColors: true, side: DoubleSide, opacity, transparent: opacity < 1 || onTop, depthTest: !onTop };
    const material = flat ? new MeshBasicMaterial(look) : new MeshStandardMaterial({ ...look, roughness: 0.65, metalness: 0 });
    const object = new Mesh(this.geometries[mesh], material);
    object.matrixAutoUpdate = false; object.frustumCulled = false; object.renderOrder = onTop ? 1 : 0;
    this.root.add(object);
    return {
      move: (matrix) => { object.matrix.fromArray(matrix); object.matrixWorldNeedsUpdate = true; },
      show: (visible) => { object.visible = visible; },
    };
  }
  addLine(points, color) {
    const { Line, LineSegments, BufferGeometry, BufferAttribute, LineBasicMaterial } = this.three;
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(points.data, 3));
    geometry.computeBoundingBox();
    const line = new (points.segments ? LineSegments : Line)(geometry, new LineBasicMaterial({ color }));
    line.frustumCulled = false;
    this.root.add(line);
    return {
      upTo: (count) => geometry.setDrawRange(0, count),
      put: (position) => line.position.set(...position),
      show: (visible) => { line.visible = visible; },
    };
  }
  look(camera) { this.k3d.setCamera([...camera.position, ...camera.target, ...camera.up]); }
  shift(d) {
    const { camera, controls } = this.k3d.getWorld();
    camera.position.set(...sum(camera.position.toArray(), d));
    controls.target.set(...sum(controls.target.toArray(), d));
  }
  draw() {  // without the labels of the viewer's own grid, which take longer than all bodies
    const { renderer, scene, camera } = this.k3d.getWorld();
    camera.updateMatrixWorld();
    renderer.clear();
    renderer.render(scene, camera);
  }
}

class Lines {
  static async open(scene) {
    const lines = new Lines();
    lines.canvas = Object.assign(document.createElement("canvas"), { className: "stage" });
    byId("view").prepend(lines.canvas);
    lines.pen = lines.canvas.getContext("2d");
    lines.meshes = scene.meshes.map((mesh) => ({ v: floats(mesh.v), e: floats(mesh.e) }));
    lines.objects = [];
    lines.turn();
    new ResizeObserver(() => lines.draw()).observe(lines.canvas);
    return lines;
  }
  turn() {  // the pointer turns the camera about the upward direction and tilts it
    const canvas = this.canvas;
    canvas.addEventListener("pointermove", (event) => {
      if (!event.buttons) return;
      const c = this.camera, back = sum(c.position, c.target, -1), distance = Math.hypot(...back);
      const side = unit(cross(c.up, back)), above = cross(unit(back), side);
      const moved = sum(sum(back, side, -event.movementX * 0.01 * distance), above, event.movementY * 0.01 * distance);
      this.look({ ...c, position: sum(c.target, unit(moved), distance) });
      this.draw();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const c = this.camera;
      this.look({ ...c, position: sum(c.target, sum(c.position, c.target, -1), Math.exp(event.deltaY * 0.001)) });
      this.draw();
    }, { passive: false });
  }
  addMesh(mesh, color, opacity) {
    const object = { ...this.meshes[mesh], color, opacity, matrix: new Float32Array(16), visible: true };
    this.objects.push(object);
    return { move: (matrix) => object.matrix.set(matrix), show: (visible) => { object.visible = visible; } };
  }
  addLine(points, color) {
    const object = { line: points.data, segments: points.segments, count: points.data.length / 3, color, opacity: 1, visible: true, at: [0, 0, 0] };
    this.objects.push(object);
    return {
      upTo: (count) => { object.count = count; },
      put: (position) => { object.at = position; },
      show: (visible) => { object.visible = visible; },
    };
  }
  look(camera) { this.camera = camera; }
  shift(d) { this.camera = { ...this.camera, position: sum(this.camera.position, d), target: sum(this.camera.target, d) }; }
  draw() {
    const ratio = window.devicePixelRatio || 1, { canvas, pen, camera } = this;
    const width = (canvas.width = canvas.clientWidth * ratio), height = (canvas.height = canvas.clientHeight * ratio);
    if (!camera) return;
    const back = sum(camera.position, camera.target, -1), distance = Math.hypot(...back), b = unit(back);
    const x = unit(cross(camera.up, b)), y = cross(b, x);
    const scale = Math.min(width, height) / (2 * distance * Math.tan(Math.PI / 9));
    const put = (px, py, pz) => {
      const d = [px - camera.target[0], py - camera.target[1], pz - camera.target[2]];
      return [width / 2 + scale * dot(d, x), height / 2 - scale * dot(d, y)];
    };
    for (const o of this.objects) {
      if (!o.visible) continue;
      pen.strokeStyle = o.color; pen.globalAlpha = o.opacity; pen.lineWidth = 1.5 * ratio;
      pen.beginPath();
      if (o.line) {
        for (let k = 0; k < o.count; k++) {
          const point = put(o.line[3 * k] + o.at[0], o.line[3 * k + 1] + o.at[1], o.line[3 * k + 2] + o.at[2]);
          if (k === 0 || (o.segments && k % 2 === 0)) pen.moveTo(...point); else pen.lineTo(...point);
        }
      } else {
        const m = o.matrix, v = o.v;
        const at = (i) => put(
          m[0] * v[3 * i] + m[4] * v[3 * i + 1] + m[8] * v[3 * i + 2] + m[12],
          m[1] * v[3 * i] + m[5] * v[3 * i + 1] + m[9] * v[3 * i + 2] + m[13],
          m[2] * v[3 * i] + m[6] * v[3 * i + 1] + m[10] * v[3 * i + 2] + m[14]);
        for (let k = 0; k < o.e.length; k += 2) { pen.moveTo(...at(o.e[k])); pen.lineTo(...at(o.e[k + 1])); }
      }
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }
}

// -- the items of a motion -----------------------------------------------------------------------------------

const matrix = new Float32Array(16), pose = new Float32Array(16);
const HEAD = 0.28;  // length of the head of an arrow relative to the largest arrow

function makeItem(viewer, scene, motion, item) {
  const at = (index) => sum(motion.position(index), motion.offset);
  if (item.kind === "solid") {
    const mesh = viewer.addMesh(item.mesh, item.color, item.opacity, { onTop: item.group === "frames", flat: item.flat });
    return { show: mesh.show, update: () => mesh.move(product(matrix, fromPose(pose, at(item.track), motion.rotation(item.track)), item.local)) };
  }
  if (item.kind === "bar") {
    const mesh = viewer.addMesh(scene.shared.bar, item.color, item.opacity);
    return {
      show: mesh.show,
      update: () => {
        const a = at(item.a), d = sum(at(item.b), a, -1);
        mesh.move(stretched(matrix, a, unit(d), Math.hypot(...d), item.radius));
      },
    };
  }
  if (item.kind === "arrow") {
    const part = (mesh) => viewer.addMesh(mesh, item.color, 1, { onTop: true, flat: true });
    const shaft = part(scene.shared.bar), head = part(scene.shared.head);
    const full = HEAD * scene.arrow;
    let visible = true;
    const show = (value) => { visible = value; };
    return {
      show,
      update: () => {
        const a = at(item.foot), v = motion.position(item.vector), length = Math.hypot(...v);
        const seen = visible && length > 1e-3 * scene.arrow;
        for (const part of [shaft, head]) part.show(seen);
        if (!seen) return;
        const d = unit(v), tip = Math.min(full, 0.5 * length);
        shaft.move(stretched(matrix, a, d, length - tip, 0.07 * full));
        head.move(stretched(matrix, sum(a, d, length - tip), d, tip, 0.22 * full));
      },
    };
  }
  if (item.kind === "turn") {
    const arc = viewer.addMesh(scene.shared.turn, item.color, 1, { onTop: true, flat: true });
    let visible = true;
    return {
      show: (value) => { visible = value; },
      update: () => {
        const v = motion.position(item.vector), radius = Math.hypot(...v), seen = visible && radius > 1e-3 * scene.arrow;
        arc.show(seen);
        if (seen) arc.move(stretched(matrix, at(item.foot), unit(v), radius, radius));
      },
    };
  }
  const p = motion.tracks[item.track].p, data = new Float32Array(p.length);  // of a trace
  for (let k = 0; k < p.length; k++) data[k] = p[k] + motion.offset[k % 3];
  const line = viewer.addLine({ data }, item.color);
  return { show: line.show, update: () => line.upTo(motion.k + 1) };
}

// A grid below the scene, with a step of 1, 2 or 5 times a power of ten; it moves by steps with the camera.
function addGrid(viewer, scene) {
  const box = scene.follow ? scene.near : scene.box;
  const wide = (scene.follow ? 2.5 : 1) * Math.max(scene.size, Math.hypot(...sum(box[1], box[0], -1)));
  const power = 10 ** Math.floor(Math.log10(wide / 8));
  const step = [1, 2, 5, 10].map((x) => x * power).find((x) => wide / x <= 14);
  const { up } = scene, x = cross(up, scene.front), y = sum([0, 0, 0], scene.front, -1);
  const lowest = Math.min(...corners(scene.box).map((c) => dot(c, up)));
  const n = Math.ceil((0.6 * wide) / step), data = [];
  const put = (i, j) => data.push(...sum(sum([0, 0, 0], x, i * step), y, j * step));
  for (let i = -n; i <= n; i++)
    for (let j = -n; j < n; j++) { put(i, j); put(i, j + 1); put(j, i); put(j + 1, i); }
  const grid = viewer.addLine({ data: new Float32Array(data), segments: true }, "#cfd4da");
  const snapped = (center, axis) => Math.round(dot(center, axis) / step) * step;
  const place = (center) => grid.put(sum(sum(sum([0, 0, 0], up, lowest), x, snapped(center, x)), y, snapped(center, y)));
  return { step, place };
}

const corners = (box) => [0, 1, 2, 3, 4, 5, 6, 7].map((k) => [0, 1, 2].map((i) => box[(k >> i) & 1][i]));
const middle = (box) => sum(box[0], box[1]).map((x) => x / 2);

function cameraFrom(scene, box, look, up) {
  const target = middle(box), back = unit(look);
  const right = unit(cross(up, back)), above = cross(back, right);
  const view = byId("view"), aspect = view.clientWidth / Math.max(1, view.clientHeight), slope = Math.tan(Math.PI / 9);
  let distance = 1e-6;
  for (const corner of corners(box)) {
    const d = sum(corner, target, -1), depth = dot(d, back);
    distance = Math.max(distance, depth + Math.abs(dot(d, above)) / slope, depth + Math.abs(dot(d, right)) / (slope * aspect));
  }
  distance = 1.18 * distance + 0.02 * scene.size;
  return { position: sum(target, back, distance), target, up: above, right };
}

function namedCamera(scene, box, name) {
  const { up, front } = scene, look = { start: scene.look, front, right: cross(up, front), top: up }[name];
  return cameraFrom(scene, box, look, dot(look, up) > 0.999 ? sum([0, 0, 0], front, -1) : up);  // from above
}

// -- the page ------------------------------------------------------------------------------------------------

const SPEEDS = [-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4].flatMap((k) => [1, 2, 5].map((x) => Number(`${x}e${k}`)));

class Player {
  constructor(scene, viewer, motions, items, grid) {
    Object.assign(this, { scene, viewer, motions, items, grid });
    this.follow = scene.follow; this.center = [0, 0, 0];
    this.start = Math.min(...motions.map((m) => m.times[0]));
    this.end = Math.max(...motions.map((m) => m.times[m.times.length - 1]));
    this.playing = false; this.speed = 1; this.frames = 0;
    this.marks = motions.flatMap((m) => m.marks.map(([t, name, kind]) => ({ t, text: `${motions.length > 1 ? m.label + ": " : ""}${name} ${kind === "user" ? "" : kind}`.trim() })));
    this.marks.sort((a, b) => a.t - b.t);
    this.digits = Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(Math.max(1e-9, this.end - this.start)))));
  }
  get duration() { return this.end - this.start; }
  // The box that the camera shows: the bodies around their present center, or the whole motion.
  get box() {
    return this.follow ? this.scene.near.map((corner) => sum(corner, this.center)) : this.scene.box;
  }
  look(name) {
    this.viewer.look(namedCamera(this.scene, this.box, name));
    return this.viewer.draw();
  }
  followCenter() {
    const n = this.motions.length;
    let center = [0, 0, 0];
    for (const motion of this.motions) center = sum(center, sum(motion.position(motion.center), motion.offset), 1 / n);
    if (this.follow && this.time !== undefined) this.viewer.shift(sum(center, this.center, -1));
    if (this.follow) this.grid.place(center);
    this.center = center;
  }
  seek(t) {
    const time = Math.min(this.end, Math.max(this.start, t));
    for (const motion of this.motions) motion.seek(time);
    this.followCenter();
    this.time = time;
    for (const item of this.items) item.update();
    byId("scrub").value = this.time;
    byId("time").textContent = `t = ${this.time.toFixed(this.digits)} s`;
    this.showEvent();
    this.frames += 1;
    return this.viewer.draw();
  }
  showEvent() {
    const near = Math.max(0.3 * this.speed, 0.005 * this.duration);
    const last = this.marks.filter((mark) => mark.t <= this.time && this.time - mark.t <= near).slice(-3);
    const text = last.map((mark) => `${mark.text} at ${mark.t.toFixed(this.digits)} s`).join("; ");
    if (byId("event").textContent !== text) byId("event").textContent = text;
  }
  play() {
    if (this.playing) return;
    if (this.time >= this.end) this.seek(this.start);
    this.playing = true; byId("play").textContent = "Pause";
    let before = null;
    const step = (now) => {
      if (!this.playing) return;
      const elapsed = before === null ? 0 : Math.min(0.25, (now - before) / 1000);
      before = now;
      let t = this.time + elapsed * this.speed;
      if (t >= this.end && byId("loop").checked) t = this.start;
      this.seek(t);
      if (t >= this.end) this.pause(); else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
  pause() { this.playing = false; byId("play").textContent = "Play"; }
  show(group, visible) {
    for (const item of this.items) if (item.group === group) item.show(visible);
    this.seek(this.time);
  }
}

function connect(player) {
  const { scene } = player, scrub = byId("scrub");
  scrub.min = player.start; scrub.max = player.end;
  scrub.addEventListener("input", () => { player.pause(); player.seek(Number(scrub.value)); });
  byId("play").addEventListener("click", () => (player.playing ? player.pause() : player.play()));
  document.addEventListener("keydown", (event) => {
    if (["INPUT", "SELECT", "BUTTON"].includes(event.target.tagName) && event.target !== scrub) return;
    if (event.key === " ") { event.preventDefault(); byId("play").click(); }
  });
  const natural = player.duration > 0 ? SPEEDS.reduce((best, x) => (player.duration / x >= 4 ? x : best), SPEEDS[0]) : 1;
  player.speed = player.duration > 120 ? natural : Math.min(1, natural);
  const useful = SPEEDS.filter((x) => player.duration / x >= 0.5 && player.duration / x <= 2000);
  for (const x of useful.length ? useful : [1]) byId("speed").add(new Option(`${x} x`, x, false, x === player.speed));
  byId("speed").addEventListener("change", (event) => { player.speed = Number(event.target.value); });
  byId("camera").addEventListener("change", (event) => player.look(event.target.value));
  byId("follow").checked = player.follow;
  byId("follow").addEventListener("change", (event) => {
    player.follow = event.target.checked;
    player.look(byId("camera").value);
  });
  for (const group of ["frames", "traces", "forces"]) {
    if (!player.items.some((item) => item.group === group)) continue;
    const box = Object.assign(document.createElement("input"), { type: "checkbox", id: `show-${group}`, checked: scene.show[group] });
    const label = document.createElement("label");
    label.append(box, ` ${group} `);
    byId("groups").append(label);
    box.addEventListener("change", () => player.show(group, box.checked));
    for (const item of player.items) if (item.group === group) item.show(box.checked);
  }
  for (const mark of player.marks.slice(0, 500)) {
    const tick = document.createElement("b");
    tick.title = `${mark.text}, ${mark.t.toFixed(player.digits)} s`;
    tick.style.left = `${(100 * (mark.t - player.start)) / (player.duration || 1)}%`;
    byId("marks").append(tick);
  }
}

const FORCES = { contact: "contact forces", reaction: "reactions", control: "controls", load: "loads" };

function describe(player, notices) {
  const { scene } = player, entries = new Map();
  for (const motion of player.motions)
    for (const item of motion.items)
      if (item.group === "forces") entries.set(item.color, FORCES[item.type]);
      else if (item.group === "bodies" && player.motions.length === 1 && !entries.has(item.color)) entries.set(item.color, item.name);
  const add = (color, text) => {
    const entry = document.createElement("span");
    if (color) entry.append(Object.assign(document.createElement("i"), { style: `background: ${color}` }));
    entry.append(text);
    byId("legend").append(entry);
  };
  for (const [color, text] of [...entries].slice(0, 14)) add(color, text);
  if (player.motions.length > 1) for (const m of player.motions) add(m.color, m.label);
  const largest = ([name, x]) => `${name === "N" ? "longest arrow" : "largest arc"} ${x.toPrecision(3)} ${name}${scene.beyond.includes(name) ? " or more" : ""}`;
  const scales = Object.entries(scene.peaks).map(largest);
  add("", [`grid ${Number(player.grid.step.toPrecision(3))} m`, ...scales].join(", "));
  note(notices);
}

// What the reader has to know stands open; what only says what is missing opens on a click.
function note(texts, open = false) {
  for (const text of texts) byId("notices").append(Object.assign(document.createElement("li"), { textContent: text }));
  const count = byId("notices").children.length;
  byId("notes").hidden = count === 0;
  byId("notes").open ||= open;
  byId("notes").firstElementChild.textContent = count === 1 ? "1 remark" : `${count} remarks`;
}

async function main() {
  const scene = JSON.parse(await inflated("scene-data"));
  const motions = scene.motions.map((data) => new Motion(data)), webgl = hasWebGL();
  if (!webgl) note(["This browser has no WebGL 2: bodies are drawn as lines."], true);
  const viewer = await (webgl ? Viewer : Lines).open(scene), grid = addGrid(viewer, scene);
  grid.place(middle(scene.box));
  const items = motions.flatMap((motion) => motion.items.map((item) => ({ group: item.group, ...makeItem(viewer, scene, motion, item) })));
  const player = new Player(scene, viewer, motions, items, grid);
  describe(player, scene.notices);
  connect(player);
  viewer.look(namedCamera(scene, player.box, "start"));
  player.seek(player.start);
  player.look("start");
  player.webgl = webgl;
  window.animation = player;  // for other scripts of the page and for tests
  document.body.dataset.state = "ready";
}

main().catch((error) => {
  note([`The motion cannot be drawn: ${error}`], true);
  document.body.dataset.state = "failed";
  console.error(error);
});
