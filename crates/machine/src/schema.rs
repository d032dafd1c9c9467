//! The OpenAPI schemas of types that reports contain.

use crate::{HistoryEvent, IterationRow, LoopEnd, RunStatus};
use std::borrow::Cow;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};
use windlass_model::model::Status;
use windlass_value::time::Timestamp;

fn of(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::Type(kind))
}

fn words(words: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    of(Type::String).enum_values(Some(words)).into()
}

fn named<T: ToSchema>() -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(T::name()))
}

macro_rules! schema {
    ($type:ty, $name:literal, $schema:expr) => {
        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                $schema
            }
        }

        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    };
}

schema!(
    RunStatus,
    "RunStatus",
    words(RunStatus::ALL.map(RunStatus::as_str))
);
schema!(LoopEnd, "LoopEnd", words(LoopEnd::ALL.map(LoopEnd::as_str)));
schema!(
    HistoryEvent,
    "HistoryEvent",
    of(Type::Object)
        .description(Some("What happened; other members depend on `event`"))
        .property("at", named::<Timestamp>())
        .required("at")
        .property("event", of(Type::String))
        .required("event")
        .additional_properties(Some(AdditionalProperties::FreeForm(true)))
        .into()
);
schema!(
    IterationRow,
    "IterationRow",
    of(Type::Object)
        .property("path", of(Type::String))
        .required("path")
        .property("iteration", of(Type::Integer))
        .required("iteration")
        .property(
            "condition",
            ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::Boolean, Type::Null]))
        )
        .property("status", named::<Status>())
        .required("status")
        .property(
            "result",
            ObjectBuilder::new().schema_type(SchemaType::AnyValue)
        )
        .property("started_at", named::<Timestamp>())
        .required("started_at")
        .property("ended_at", named::<Timestamp>())
        .required("ended_at")
        .into()
);
