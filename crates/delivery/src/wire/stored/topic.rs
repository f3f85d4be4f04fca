//! A topic: how its records are read, and which fields of custom events are their attributes.

use serde::{Deserialize, Serialize};

use super::field::of_field;
use super::version::Version;
use super::words::InputV1;
use crate::event::mapping::{Field, Mapping};
use crate::subscription::catalogue::Topic;
use crate::subscription::name::TopicName;
use crate::subscription::topic_settings::TopicSettings;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TopicV1 {
    v: Version,
    input: InputV1,
    #[serde(default, skip_serializing_if = "MappingV1::is_empty")]
    mapping: MappingV1,
    max_replies: u32,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct MappingV1 {
    #[serde(skip_serializing_if = "FieldV1::is_empty")]
    id: FieldV1,
    #[serde(skip_serializing_if = "FieldV1::is_empty")]
    topic: FieldV1,
    #[serde(skip_serializing_if = "FieldV1::is_empty")]
    event_time: FieldV1,
    #[serde(skip_serializing_if = "FieldV1::is_empty")]
    event_type: FieldV1,
    #[serde(skip_serializing_if = "FieldV1::is_empty")]
    subject: FieldV1,
    #[serde(skip_serializing_if = "FieldV1::is_empty")]
    data_version: FieldV1,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldV1 {
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

impl MappingV1 {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl FieldV1 {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&Topic> for TopicV1 {
    fn from(topic: &Topic) -> Self {
        let TopicSettings { input, mapping, from: _, max_replies } = &topic.settings;
        Self {
            v: Version,
            input: InputV1(*input),
            mapping: MappingV1::from(&**mapping),
            max_replies: *max_replies,
        }
    }
}

impl TopicV1 {
    pub(super) fn into_topic(self, name: TopicName) -> Result<Topic, String> {
        let Self { v: Version, input: InputV1(input), mapping, max_replies } = self;
        let mapping = mapping.into_mapping()?.into();
        let settings = TopicSettings { input, mapping, from: Vec::new(), max_replies };
        Ok(Topic { name, settings })
    }
}

impl From<&Mapping> for MappingV1 {
    fn from(mapping: &Mapping) -> Self {
        let Mapping { id, topic, event_time, event_type, subject, data_version } = mapping;
        Self {
            id: id.into(),
            topic: topic.into(),
            event_time: event_time.into(),
            event_type: event_type.into(),
            subject: subject.into(),
            data_version: data_version.into(),
        }
    }
}

impl MappingV1 {
    fn into_mapping(self) -> Result<Mapping, String> {
        Ok(Mapping {
            id: self.id.into_field("mapping.id.field")?,
            topic: self.topic.into_field("mapping.topic.field")?,
            event_time: self.event_time.into_field("mapping.eventTime.field")?,
            event_type: self.event_type.into_field("mapping.eventType.field")?,
            subject: self.subject.into_field("mapping.subject.field")?,
            data_version: self.data_version.into_field("mapping.dataVersion.field")?,
        })
    }
}

impl From<&Field> for FieldV1 {
    fn from(Field { path, default }: &Field) -> Self {
        Self { field: path.as_ref().map(ToString::to_string), default: default.clone() }
    }
}

impl FieldV1 {
    fn into_field(self, name: &str) -> Result<Field, String> {
        let path = self.field.map(|path| of_field(name, path.parse())).transpose()?;
        Ok(Field { path, default: self.default })
    }
}
