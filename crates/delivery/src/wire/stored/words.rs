//! The words of version 1, one list for each enumeration.
//!
//! Separate from the words of files and logs: those may change, and two dialects share one.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::event::Input;
use crate::event::schema::Schema;
use crate::subscription::auth::oauth2::Style;
use crate::subscription::auth::sigv4::SigningService;
use crate::subscription::dead_letter_format::{
    DeadLetterFormat, ErrorData, Format, Layout, Response,
};
use crate::subscription::profile::Dialect;
use crate::subscription::{Disabled, OnRefused};

/// An enumeration and the word of each variant. A word that is none of them is an error that names the field.
macro_rules! stored_words {
    ($(
        $field:literal $name:ident($of:ident) { $([$($variant:tt)+] = $word:literal,)+ }
    )+) => {$(
        pub(super) struct $name(pub(super) $of);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(match self.0 { $($of::$($variant)+ => $word,)+ })
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match String::deserialize(deserializer)?.as_str() {
                    $($word => Ok(Self($of::$($variant)+)),)+
                    word => Err(D::Error::custom(format!(
                        "{} is {word:?}, expected is one of {}", $field, [$($word),+].join(", ")
                    ))),
                }
            }
        }
    )+};
}

stored_words! {
    "dialect" DialectV1(Dialect) {
        [Knative] = "knative",
        [EventGrid] = "eventgrid",
        [EventGridResource] = "eventgrid-resource",
        [EventGridNamespace] = "eventgrid-namespace",
        [EventGridKubernetes] = "eventgrid-kubernetes",
        [Native] = "native",
    }
    "schema" SchemaV1(Schema) {
        [CloudEventsStructured] = "cloudevents-structured",
        [CloudEventsBinary] = "cloudevents-binary",
        [EventGrid] = "eventgrid",
        [Custom] = "custom",
    }
    "auth.oauth2.style" StyleV1(Style) {
        [Basic] = "basic",
        [Post] = "post",
    }
    "auth.sigv4.service" SigningServiceV1(SigningService) {
        [ExecuteApi] = "execute-api",
        [Lambda] = "lambda",
        [VpcLattice] = "vpc-lattice-svcs",
    }
    "disable.then" DisabledV1(Disabled) {
        [Hold] = "hold",
        [DeadLetter] = "deadLetter",
    }
    "batch.onRefused" OnRefusedV1(OnRefused) {
        [Split] = "split",
        [All] = "all",
    }
    "deadLetter.format" FormatV1(DeadLetterFormat) {
        [Fixed(Format::Namespace)] = "namespace",
        [Fixed(Format::EventGrid)] = "eventgrid",
        [Fixed(Format::CloudEvents)] = "cloudevents",
        [Fixed(Format::Custom)] = "custom",
        [Fixed(Format::Knative)] = "knative",
        [ByDeliverySchema] = "byDeliverySchema",
    }
    "deadLetter.layout" LayoutV1(Layout) {
        [Nested] = "nested",
        [Flat] = "flat",
    }
    "deadLetter.errorData" ErrorDataV1(ErrorData) {
        [Text] = "text",
        [Base64] = "base64",
    }
    "deadLetter.response" ResponseV1(Response) {
        [Beginning] = "beginning",
        [None] = "none",
    }
    "input" InputV1(Input) {
        [Auto] = "auto",
        [CloudEvents] = "cloudevents",
        [EventGrid] = "eventgrid",
        [Custom] = "custom",
        [Opaque] = "opaque",
        [Sns] = "sns",
        [SnsWhole] = "sns-whole",
        [EventBridge] = "eventbridge",
        [S3] = "s3",
    }
}
