//! Finds a cycle in a graph whose nodes name their predecessors.

/// Returns the edges of one cycle, in their direction. Returns `None` if the graph has no cycle.
/// `before` has, for each node, the edges that lead to it. `from` returns the node where an edge starts.
pub(super) fn cycle<E: Copy>(before: &[Vec<E>], from: impl Fn(E) -> usize) -> Option<Vec<E>> {
    // The state of a node is 0 (not seen), 1 (on the path) or 2 (done). The stack is explicit, because the depth of a
    // recursion would be unlimited.
    let mut seen = vec![0_u8; before.len()];
    for root in 0..before.len() {
        if seen.get(root) != Some(&0) {
            continue;
        }
        let mut path: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some((at, next)) = path.last_mut() {
            if let Some(state) = seen.get_mut(*at) {
                *state = 1;
            }
            let Some(edge) = before.get(*at).and_then(|edges| edges.get(*next)) else {
                if let Some(state) = seen.get_mut(*at) {
                    *state = 2;
                }
                path.pop();
                continue;
            };
            *next += 1;
            let to = from(*edge);
            match seen.get(to) {
                Some(1) => {
                    let start = path.iter().position(|(node, _)| *node == to)?;
                    let taken = path.get(start..)?.iter().rev();
                    let edges = taken.map(|(node, next)| {
                        let edges = before.get(*node)?;
                        edges.get(next.checked_sub(1)?).copied()
                    });
                    return edges.collect();
                }
                Some(0) => path.push((to, 0)),
                _ => {}
            }
        }
    }
    None
}
