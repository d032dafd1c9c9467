//! Schemas of the types that other rooms own, as they serialise.

use super::workflows::WorkflowText;
use crate::api::StartRun;
use crate::engine::{HistoryEvent, IterationRow, LoopEnd, RunStatus, Status, Timestamp};
use std::borrow::Cow;
use std::marker::PhantomData;
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat,
    SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

fn of(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::Type(kind))
}

fn words(words: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    of(Type::String).enum_values(Some(words)).into()
}

fn named<T: ToSchema>() -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(T::name()))
}

/// A body of JSON: an envelope, or a workflow as it is.
pub(super) struct OrWorkflow<T>(PhantomData<T>);

/// The body of a request that brings a workflow.
pub(super) type WorkflowBody = OrWorkflow<WorkflowText>;

/// The body of a request that starts a run.
pub(super) type StartBody = OrWorkflow<StartRun>;

impl<T: ToSchema> PartialSchema for OrWorkflow<T> {
    fn schema() -> RefOr<Schema> {
        let bare = of(Type::Object)
            .description(Some("A workflow as it is: has no member of the other"))
            .additional_properties(Some(AdditionalProperties::FreeForm(true)));
        let either = AnyOfBuilder::new().item(named::<T>()).item(bare);
        Schema::AnyOf(either.build()).into()
    }
}

impl<T: ToSchema> ToSchema for OrWorkflow<T> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("{}OrWorkflow", T::name()))
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
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
    Timestamp,
    "Timestamp",
    of(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .into()
);
schema!(
    RunStatus,
    "RunStatus",
    words(RunStatus::ALL.map(RunStatus::as_str))
);
schema!(Status, "Status", words(Status::ALL.map(Status::as_str)));
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
