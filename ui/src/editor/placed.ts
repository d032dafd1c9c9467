// A canvas as its file places it: nodes at their `position`, and lines from port to port.
import type { Graph, GraphEdge, GraphNode } from '../api/types';

export interface Spot {
  x: number;
  y: number;
}

const KEY = /(^|[\s,{])["']?position["']?[ \t]*:[ \t]*(?:\{([^}]*)\}|\r?\n((?:[ \t]+["']?[xy]["']?[ \t]*:[^\n]*\n?){1,2}))/g;

/** Returns the `position` in a node's text; of several, the outermost, because inner nodes have their own. */
export function spotIn(text: string): Spot | undefined {
  let best: { indent: number; spot: Spot } | undefined;
  for (const match of text.matchAll(KEY)) {
    const inner = match[2] ?? match[3] ?? '';
    const part = (name: string): number => Number(new RegExp(`["']?${name}["']?\\s*:\\s*(-?[\\d.]+)`).exec(inner)?.[1] ?? NaN);
    const spot = { x: part('x'), y: part('y') };
    const at = match.index + (match[1]?.length ?? 0);
    const line = text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
    const indent = /^\s*/.exec(line)?.[0].length ?? 0;
    if (Number.isFinite(spot.x) && Number.isFinite(spot.y) && (!best || indent < best.indent)) best = { indent, spot };
  }
  return best?.spot;
}

const POINTS = ['start', 'end', 'break', 'choice'];
const MARGIN = 24;

/** Returns the graph with its nodes at their spots. Nodes without a spot stay as laid out, below the others. */
export function placed(graph: Graph, spots: Map<string, Spot>): { graph: Graph; shift: Spot } {
  const real = graph.nodes.filter((node) => !POINTS.includes(node.kind));
  const known = [...spots.values()];
  const shift = { x: MARGIN - Math.min(MARGIN, ...known.map((spot) => spot.x)), y: MARGIN - Math.min(MARGIN, ...known.map((spot) => spot.y)) };
  const bottom = Math.max(0, ...real.filter((node) => spots.has(node.id)).map((node) => (spots.get(node.id)?.y ?? 0) + shift.y + node.height));
  const nodes = real.map((node): GraphNode => {
    const spot = spots.get(node.id);
    const to = spot ? { x: spot.x + shift.x, y: spot.y + shift.y } : { x: node.x, y: node.y + (known.length > 0 ? bottom + MARGIN : 0) };
    return { ...node, ...to, ports: node.ports?.map((port) => ({ ...port, x: port.x - node.x + to.x, y: port.y - node.y + to.y })) };
  });
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const edges = graph.edges.flatMap((edge): GraphEdge[] => {
    const [from, to] = [byId.get(edge.from), byId.get(edge.to)];
    if (!from || !to) return [];
    const out = from.ports?.find((port) => port.side === 'out' && port.name === edge.from_port) ?? { x: from.x + from.width / 2, y: from.y + from.height };
    const into = to.ports?.find((port) => port.side === 'in' && port.name === edge.to_port) ?? { x: to.x + to.width / 2, y: to.y };
    const middle = Math.round((out.y + into.y) / 2);
    return [{ ...edge, label_at: null, points: [[out.x, out.y], [out.x, middle], [into.x, middle], [into.x, into.y]] }];
  });
  const width = Math.max(...nodes.map((node) => node.x + node.width), 100) + MARGIN;
  const height = Math.max(...nodes.map((node) => node.y + node.height), 100) + MARGIN;
  return { graph: { width, height, root: graph.root, nodes, edges }, shift };
}
