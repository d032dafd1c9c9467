//! The rules of a run in which the formats differ, in one table.

use windlass_expression::Mode;
use windlass_model::model::{Dialect, Rules, UnrunActionValue};

const LOOM: Rules = Rules {
    mode: Mode::Loom,
    case_sensitive: false,
    bare_seconds: false,
    missing_is_null: false,
    creates_variables: true,
    cases_are_text: true,
    env_variable: false,
    unrun_value: UnrunActionValue::Cancelled,
    lists_iterations: false,
    http_codes: false,
    reports_nodes: false,
    reports_checks: false,
    shows_ports: false,
    closed_nodes: &[],
    exit_words: &[],
};

/// Returns the rules of a format.
#[must_use]
pub fn rules(dialect: Dialect) -> Rules {
    match dialect {
        Dialect::Loom => LOOM,
        Dialect::Azure => Rules {
            mode: Mode::Azure,
            creates_variables: false,
            cases_are_text: false,
            unrun_value: UnrunActionValue::Skipped,
            lists_iterations: true,
            http_codes: true,
            ..LOOM
        },
        // The keys of the state are names in Python, so their case matters. The exit words are from TEA's story
        // TEA-PY-003.
        Dialect::Tea => Rules {
            case_sensitive: true,
            bare_seconds: true,
            missing_is_null: true,
            unrun_value: UnrunActionValue::Error,
            reports_nodes: true,
            reports_checks: true,
            exit_words: &[
                ("while_loop", "condition", "condition_false"),
                ("while_loop", "count", "max_iterations_reached"),
            ],
            ..LOOM
        },
        Dialect::Canvas => Rules {
            bare_seconds: true,
            env_variable: true,
            unrun_value: UnrunActionValue::Error,
            shows_ports: true,
            closed_nodes: &["loop", "map", "component"],
            exit_words: &[("loop", "count", "limit")],
            ..LOOM
        },
    }
}
