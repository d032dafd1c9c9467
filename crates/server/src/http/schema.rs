//! The schemas of bodies that have one of two forms.

use std::borrow::Cow;
use std::marker::PhantomData;
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// A JSON body that is either an envelope (an object that contains a workflow's text) or the workflow itself.
pub(super) struct OrWorkflow<T>(PhantomData<T>);

impl<T: ToSchema> PartialSchema for OrWorkflow<T> {
    fn schema() -> RefOr<Schema> {
        let bare = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::Object))
            .description(Some("A workflow as it is: has no member of the other"))
            .additional_properties(Some(AdditionalProperties::FreeForm(true)));
        let named = RefOr::<Schema>::Ref(Ref::from_schema_name(T::name()));
        let either = AnyOfBuilder::new().item(named).item(bare);
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
