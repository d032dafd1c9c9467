//! Draws a graph as SVG.
//! The file has no scripts. It is light or dark according to the settings of the viewer's screen.

use super::layout::{EDGE_TEXT, NODE_TEXT, does, layout};
use super::picture::{Edge, Graph, Node};
use super::{Detail, tree};
use std::fmt::Write;
use windlass_machine::program::Program;
use windlass_value::{escape_markup, fitted};

/// Radius of the corners of lines.
const ROUND: i64 = 6;

const STYLE: &str = "\
svg{--paper:#fff;--box:#fff;--frame:#f5f7fa;--ink:#1b2430;--soft:#5b6777;--line:#7a8797;\
--edge:#b6c0cc;--loop:#2563c9;--fork:#7a4fd0;--try:#a05a00;--step:#0b7a75;--bad:#c02637;\
background:var(--paper);font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:13px}\
@media(prefers-color-scheme:dark){svg{--paper:#10151c;--box:#1b232e;--frame:#161d27;--ink:#e6ebf2;\
--soft:#9fadbd;--line:#8492a3;--edge:#3b4757;--loop:#78aaff;--fork:#b79bff;--try:#eeb35c;\
--step:#4fc8bf;--bad:#ff7d88}}\
text{fill:var(--ink)}.s{fill:var(--soft);font-size:11px}.t{font-weight:600}\
.b{fill:var(--box);stroke:var(--edge)}.f{fill:var(--frame);stroke:var(--edge)}.k{stroke:none}\
.e{fill:none;stroke:var(--line);stroke-width:1.4}.a{fill:var(--line);stroke:none}\
.l{font-size:11px;fill:var(--soft);stroke:var(--frame);stroke-width:3px;paint-order:stroke}\
.loop,.foreach{--own:var(--loop)}.parallel,.lane,.graph{--own:var(--fork)}\
.if,.switch,.choice,.try,.tried{--own:var(--try)}.raise,.terminate{--own:var(--bad)}\
.k{fill:var(--own,var(--step))}.f.own,.b.own{stroke:var(--own,var(--edge))}\
.failed .e,.failed.e{stroke:var(--bad);stroke-dasharray:5 3}.failed .a{fill:var(--bad)}\
.again .e,.back .e{stroke:var(--loop)}.again .a,.back .a{fill:var(--loop)}\
.previous .e{stroke:var(--loop);stroke-dasharray:2 3}.previous .a{fill:var(--loop)}\
.break .e{stroke:var(--try)}.break .a{fill:var(--try)}.p{fill:var(--line)}";

/// Draws a program as an SVG document.
#[must_use]
pub fn svg(program: &Program, detail: Detail) -> String {
    let inside = tree::drawing(program).into_program_drawing().close(detail);
    let (graph, _) = layout(&inside, None);
    picture(&graph, &program.name)
}

/// Draws a graph whose nodes and edges have positions.
#[must_use]
pub fn picture(graph: &Graph, name: &str) -> String {
    let mut out = String::new();
    let (width, height) = (graph.width, graph.height);
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">"
    );
    let _ = writeln!(out, "<title>{}</title>", escaped(name));
    let _ = writeln!(out, "<style>{STYLE}</style>");
    draw(graph, &mut out);
    out.push_str("</svg>\n");
    out
}

fn draw(graph: &Graph, out: &mut String) {
    for node in graph.nodes.iter().filter(|node| node.frame) {
        frame(node, out);
    }
    for edge in &graph.edges {
        line(edge, out);
    }
    for node in graph.nodes.iter().filter(|node| !node.frame) {
        match node.kind.as_str() {
            "start" | "end" | "break" | "choice" => point(node, out),
            _ => step(node, out),
        }
    }
    for edge in &graph.edges {
        label(edge, out);
    }
}

// ── nodes ───────────────────────────────────────────────────────────────────────────────────────

fn rect(node: &Node, class: &str, shift: i64, round: i64, out: &mut String) {
    let Node {
        x,
        y,
        width,
        height,
        ..
    } = node;
    let (x, y) = (x + shift, y + shift);
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{round}\"/>"
    );
}

fn text(class: &str, x: i64, y: i64, text: &str, most: usize, out: &mut String) {
    let text = escaped(&fitted(text, most));
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
    );
}

/// Returns the sign that marks a node which repeats or branches.
fn sign(node: &Node) -> &'static str {
    match node.kind.as_str() {
        "loop" => "↻ ",
        "foreach" => "≡ ",
        "parallel" => "∥ ",
        _ => "",
    }
}

fn titled(node: &Node) -> String {
    let title = node.title.as_ref().unwrap_or(&node.name);
    format!("{}{title}", sign(node))
}

/// Writes the tooltip of a node, with the text for which the node itself has no room.
fn tip(node: &Node, out: &mut String) {
    let text = format!("{}\n{}", node.path, does(node));
    let _ = writeln!(out, "<title>{}</title>", escaped(text.trim()));
}

fn frame(node: &Node, out: &mut String) {
    let _ = writeln!(out, "<g class=\"{}\">", node.kind);
    tip(node, out);
    rect(node, "f own", 0, 10, out);
    let room = characters(node.width - 24, 65);
    let wired = i64::from(node.ports.iter().any(|port| port.side == "in"));
    let y = node.y + 20 + 18 * wired;
    text(
        "t",
        node.x + 14,
        y,
        &titled(node),
        characters(node.width - 24, 80),
        out,
    );
    let does = does(node);
    if !does.is_empty() {
        text("s", node.x + 14, y + 17, &does, room, out);
    }
    ports(node, out);
    out.push_str("</g>\n");
}

fn step(node: &Node, out: &mut String) {
    let _ = writeln!(out, "<g class=\"{}\">", node.kind);
    tip(node, out);
    if node.foldable {
        // A second rectangle behind the node shows that it has an inside.
        rect(node, "f own", 4, 8, out);
        rect(node, "b own", 0, 8, out);
    } else {
        rect(node, "b", 0, 8, out);
    }
    let (x, y, height) = (node.x, node.y, node.height);
    let _ = writeln!(
        out,
        "<rect class=\"k\" x=\"{x}\" y=\"{}\" width=\"4\" height=\"{}\" rx=\"2\"/>",
        y + 8,
        height - 16
    );
    let wired = |side: &str| i64::from(node.ports.iter().any(|port| port.side == side));
    let middle = y + (height + 18 * (wired("in") - wired("out"))) / 2;
    let room = characters(node.width - 24, 65);
    let does = does(node);
    let title = if does.is_empty() {
        middle + 5
    } else {
        middle - 3
    };
    text("t", x + 16, title, &titled(node), NODE_TEXT, out);
    text("s", x + 16, middle + 14, &does, room, out);
    ports(node, out);
    out.push_str("</g>\n");
}

fn ports(node: &Node, out: &mut String) {
    for port in &node.ports {
        let (x, y) = (port.x, port.y);
        let label_y = if port.side == "in" { y + 14 } else { y - 7 };
        let name = escaped(&fitted(&port.name, 20));
        let _ = writeln!(
            out,
            "<circle class=\"p\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>\
             <text class=\"s\" x=\"{x}\" y=\"{label_y}\" text-anchor=\"middle\">{name}</text>"
        );
    }
}

fn point(node: &Node, out: &mut String) {
    let (x, y, half) = (node.x, node.y, node.width / 2);
    let (cx, cy) = (x + half, y + half);
    let circle = |class: &str, r: i64| {
        format!("<circle class=\"{class}\" cx=\"{cx}\" cy=\"{cy}\" r=\"{r}\"/>")
    };
    let _ = match node.kind.as_str() {
        "choice" => writeln!(
            out,
            "<path class=\"b own choice\" d=\"M{cx} {y}l{half} {half}l-{half} {half}l-{half} -{half}z\"/>"
        ),
        "start" => writeln!(out, "{}", circle("p", 6)),
        "end" => writeln!(out, "{}{}", circle("b", half - 1), circle("p", 4)),
        _ => writeln!(
            out,
            "{}<path class=\"e\" d=\"M{} {}l6 6m0 -6l-6 6\"/>",
            circle("b", half - 1),
            cx - 3,
            cy - 3
        ),
    };
}

// ── edges ───────────────────────────────────────────────────────────────────────────────────────

fn line(edge: &Edge, out: &mut String) {
    let Some([x, y]) = edge.points.last() else {
        return;
    };
    let back = if edge.back { " back" } else { "" };
    let _ = writeln!(
        out,
        "<g class=\"{}{back}\"><path class=\"e\" d=\"{}\"/>\
         <path class=\"a\" d=\"M{x} {y}l-4 -8h8z\"/></g>",
        edge.kind,
        rounded(&edge.points)
    );
}

/// Returns a path through the points, with round corners.
fn rounded(points: &[[i64; 2]]) -> String {
    let mut path = String::new();
    let towards = |[x, y]: [i64; 2], to: [i64; 2]| {
        let near = |from: i64, to: i64| from + ((to - from) / 2).clamp(-ROUND, ROUND);
        [near(x, to[0]), near(y, to[1])]
    };
    for (index, point) in points.iter().enumerate() {
        let [x, y] = *point;
        let before = index.checked_sub(1).and_then(|before| points.get(before));
        let _ = match (before, points.get(index + 1)) {
            (Some(before), Some(next)) => {
                let ([ax, ay], [bx, by]) = (towards(*point, *before), towards(*point, *next));
                write!(path, "L{ax} {ay}Q{x} {y} {bx} {by}")
            }
            (None, _) => write!(path, "M{x} {y}"),
            (_, None) => write!(path, "L{x} {y}"),
        };
    }
    path
}

fn label(edge: &Edge, out: &mut String) {
    if let (Some(label), Some([x, y])) = (&edge.label, edge.label_at) {
        text("l", x, y + 4, label, EDGE_TEXT, out);
    }
}

// ── text ────────────────────────────────────────────────────────────────────────────────────────

/// Returns how many characters fit into a width. `size` is the width of a character in tenths of a pixel.
fn characters(width: i64, size: i64) -> usize {
    usize::try_from(width * 10 / size).unwrap_or(0)
}

/// Escapes text for XML, so that it is shown as it is.
/// The result has no markup, no control characters, and no characters that change the direction of writing.
fn escaped(text: &str) -> String {
    escape_markup(text, |out, c| match c {
        '"' => out.push_str("&quot;"),
        '\n' => out.push('\n'),
        '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            out.push('\u{fffd}');
        }
        '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
        c if c.is_control() => out.push('\u{fffd}'),
        c => out.push(c),
    })
}
