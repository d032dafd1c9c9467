//! The OpenAPI schemas of this module's types.

use super::Status;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

impl PartialSchema for Status {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .enum_values(Some(Status::ALL.map(Status::as_str)))
            .into()
    }
}

impl ToSchema for Status {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Status")
    }
}
