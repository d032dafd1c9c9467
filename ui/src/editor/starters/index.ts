// The texts that a new workflow can begin with.
import agent from './agent.yaml?raw';
import approval from './approval.yaml?raw';
import pages from './pages.yaml?raw';
import poll from './poll.yaml?raw';

export const STARTERS = [
  { name: 'poll', does: 'ask a server until a job is complete', text: poll },
  { name: 'pages', does: 'read all pages and collect their rows', text: pages },
  { name: 'agent', does: 'let a model improve a text', text: agent },
  { name: 'approval', does: 'ask a person with buttons', text: approval },
  { name: 'a Loom file', does: 'one action', text: 'name: new-workflow\nactions:\n  first:\n    type: compose\n    inputs: hello\n' },
  { name: 'a canvas', does: 'draw nodes and connect them', text: 'name: new-workflow\ndialect: canvas\nnodes: []\nedges: []\n' },
];
