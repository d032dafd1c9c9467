//! The keys of the format as data. The reader uses their names, and the JSON Schema is made from them; completion and
//! hover read the schema.

use serde_json::Value;
use std::sync::LazyLock;
use windlass_formats::vocabulary::schema::{document, schema_of};
use windlass_formats::vocabulary::{Definition, Key, MAP, Map, OBJECT, TEXT, Type, RequiredSets};
use windlass_formats::vocabulary::{key, required};

pub const NAME: Key = key("name", TEXT, "The workflow's name; default: the file's.");
pub const VARIABLES: Key = key("variables", OBJECT, "Variables and their first values.");
pub const STEPS: Key = required("steps", Type::ListOf(&Type::Def("step")), "Steps, one after the other.");
pub const RESULT: Key = key("result", Type::Any, "The output of a run.");

pub const CALL: Key = key("call", Type::Map(&CALL_KEYS), "Calls an activity.");
pub const ACTIVITY: Key = required("activity", TEXT, "The name of the activity.");
pub const WITH: Key = key("with", Type::Any, "The activity's input.");
pub const INTO: Key = key("into", TEXT, "The variable for the activity's result.");

pub const WAIT: Key = key("wait", TEXT, "Waits for a duration, e.g. `5s`.");

pub const REPEAT: Key = key("repeat", Type::Map(&REPEAT_KEYS), "Repeats steps.");
pub const UNTIL: Key = required("until", TEXT, "The condition that ends the loop.");
pub const TIMES: Key = required("times", COUNT, "Maximum iterations.");

pub const SET: Key = key("set", OBJECT, "Sets variables, in order.");

const COUNT: Type = Type::AnyOf(&[Type::Integer(1, None), Type::Pattern("^@|\\{\\{")]);
const ROOT: Map = Map { keys: &[&[NAME, VARIABLES, STEPS, RESULT]], ..MAP };
const CALL_KEYS: Map = Map { keys: &[&[ACTIVITY, WITH, INTO]], ..MAP };
const REPEAT_KEYS: Map = Map { keys: &[&[UNTIL, TIMES, STEPS]], ..MAP };
const STEP_KEYS: Map = Map {
    keys: &[&[CALL, WAIT, REPEAT, SET]],
    required_sets: RequiredSets::Exactly(&[&[CALL.name], &[WAIT.name], &[REPEAT.name], &[SET.name]]),
    ..MAP
};
const DEFINITIONS: &[Definition] = &[Definition { name: "step", value: Type::Map(&STEP_KEYS) }];

/// The JSON Schema of the format.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> =
        LazyLock::new(|| Value::Object(document("toy", schema_of(&Type::Map(&ROOT)), DEFINITIONS)));
    &SCHEMA
}
