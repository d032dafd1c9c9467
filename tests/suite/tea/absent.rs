//! Actions that only TEA has: the errors name the replacements that the manual names.

use windlass_engine::Engine;

#[tokio::test(flavor = "multi_thread")]
async fn what_only_tea_has_is_reported_with_a_replacement() {
    let page = std::fs::read_to_string("docs/reference/tea.md").unwrap();
    let (_, table) = page
        .split_once("| actions | instead |\n|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let engine = Engine::builder().in_memory().unwrap();
    let mut tried = 0;
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [actions, instead] = cells[..] else {
            panic!("{row}");
        };
        let instead = instead.trim_end_matches(" |");
        for action in actions.split('`').skip(1).step_by(2) {
            let action = match action {
                "memory.*" => String::from("memory.mem0.add"),
                other => other.replace('*', "any"),
            };
            for key in ["uses", "action"] {
                let text = format!("name: x\nnodes:\n  - {{ name: a, {key}: {action} }}\n");
                let messages = match engine.load_text("x.yaml", &text) {
                    Ok(workflow) => workflow
                        .warnings()
                        .render(workflow.bundle(), false)
                        .to_string(),
                    Err(error) => error.to_string(),
                };
                assert!(messages.contains(instead), "{key}: {action}: {messages}");
                assert!(!messages.contains("did you mean"), "{action}: {messages}");
            }
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried} actions");
}
