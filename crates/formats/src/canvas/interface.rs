//! The inputs and outputs of a graph that is the inner workflow of a component.

use super::tree::{Graph, Node, NodeKind, Socket};

impl Graph {
    /// Returns the inputs of a component that declares none.
    /// They are all inputs that no edge leads to, including those of source nodes.
    pub(super) fn component_inputs(&self) -> Vec<Socket> {
        let mut found: Vec<Socket> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for socket in &node.inputs.list {
                let name = &socket.port.name;
                let known = found.iter().any(|other| other.port.name == *name);
                if !known && !self.is_fed(index, name) {
                    found.push(socket.clone());
                }
            }
        }
        found
    }

    /// Returns the outputs of a component that declares none.
    pub(super) fn component_outputs(&self) -> Vec<Socket> {
        let sink = |node: &&Node| matches!(node.spec, NodeKind::Sink);
        let sinks = self.nodes.iter().filter(sink);
        let mut sockets: Vec<&Socket> = sinks.flat_map(|node| &node.outputs.list).collect();
        if sockets.is_empty() {
            sockets = self
                .nodes
                .iter()
                .flat_map(|node| &node.outputs.list)
                .collect();
            sockets.retain(|socket| self.find_component_output(&socket.port.name).is_some());
        }
        sockets.into_iter().cloned().collect()
    }

    /// Finds the node whose output `name` is the component's output. It is an interface-output, or the only node with
    /// an output of this name.
    pub(super) fn find_component_output(&self, name: &str) -> Option<(usize, &Node)> {
        let has = |(_, node): &(usize, &Node)| node.outputs.find(name).is_some();
        let nodes = || self.nodes.iter().enumerate().filter(has);
        let sink = nodes().find(|(_, node)| matches!(node.spec, NodeKind::Sink));
        sink.or_else(|| {
            let mut all = nodes();
            all.next().filter(|_| all.next().is_none())
        })
    }
}
