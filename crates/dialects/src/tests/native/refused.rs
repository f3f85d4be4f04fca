//! Refused values of native files. Each row has a `spec` with `^` at the place of its one finding,
//! and below it the finding, without its place and `error: spec.`.

use super::{HEAD, TOPIC, URL};
use crate::tests::support::{finds_one, read_one, rows, shown};

/// Settings of a Subscription beside its address.
const SETTINGS: &str = r#"
# schedules
retry: {schedule: {kind: ^expo}}
    retry.schedule.kind: "expo" is not a valid value
retry: {schedule: {kind: ^linaer}}
    retry.schedule.kind: "linaer" is not a valid value; did you mean linear?
retry: {schedule: {delay: ^P15D}}
    retry.schedule.delay: must be PT0S to P14D, but is "P15D"
retry: {schedule: {delay: ^5}}
    retry.schedule.delay: expected a duration such as PT30S, found a whole number; PT5S is 5 s
retry: {schedule: {delay: ^5s}}
    retry.schedule.delay: "5s" is not an ISO 8601 duration: at character 1, a duration must begin with P; write PT5S
retry: {timeToLive: ^1d}
    retry.timeToLive: "1d" is not an ISO 8601 duration: at character 1, a duration must begin with P; write P1D
retry: {timeToLive: ^soon}
    retry.timeToLive: "soon" is not an ISO 8601 duration: at character 1, a duration must begin with P; expected a duration
retry: {neverRetry: ^404}
    retry.neverRetry: expected a list, found a whole number; write it in brackets, as in [a, b]
retry: {schedule: ^{delay: PT2H}}
    retry.schedule: delay (PT2H) is greater than max (PT1H); the default of max is PT1H
retry: {schedule: ^{kind: constant, delay: PT3S, max: PT2S}}
    retry.schedule: delay (PT3S) is greater than max (PT2S)
retry: {schedule: ^{kind: waits}}
    retry.schedule.waits: waits is missing
retry: {schedule: {kind: waits, waits: ^[]}}
    retry.schedule.waits: must be a list of 1 to 100 durations, but has 0
retry: {schedule: {kind: waits, waits: [PT1S, ^PT0S]}}
    retry.schedule.waits[1]: must be
retry: {schedule: {kind: moments, moments: [PT2S, ^PT2S]}}
    retry.schedule.moments[1]: must be later
retry: {schedule: {^waits: [PT1S]}}
    retry.schedule.waits: waits is not allowed for this kind of schedule; kind: waits
retry: {schedule: {kind: waits, waits: [PT1S], ^delay: PT1S}}
    retry.schedule.delay: delay is not allowed
retry: {schedule: {max: ^P15D}}
    retry.schedule.max: must be PT0.001S to P14D
retry: {schedule: ^[PT1S]}
    retry.schedule: expected a mapping, found a list
# retries
retry: {maxAttempts: ^0}
    retry.maxAttempts: must be 1 to 1000, but is 0
retry: {maxAttempts: ^1001}
    retry.maxAttempts: must be 1 to 1000, but is 1001
retry: {maxAttempts: ^2.5}
    retry.maxAttempts: expected a whole number, found a number with a fraction
retry: {maxAttempts: ^"10"}
    retry.maxAttempts: expected a whole number, found text; write 10, without quotes
retry: {maxAttempts: ^many}
    retry.maxAttempts: expected a whole number, found text
retry: {maxAttempts^: }
    retry.maxAttempts: expected a whole number, found nothing
retry: {^maxAttempt: 3}
    retry.maxAttempt: unknown field "maxAttempt"; did you mean maxAttempts?
retry: {timeToLive: ^P15D}
    retry.timeToLive: must be PT1S to P14D, but is "P15D"
retry: {timeToLive: ^P1M}
    retry.timeToLive: "P1M" is not an ISO 8601 duration: at character 3, months
retry: {jitterPercent: ^101}
    retry.jitterPercent: must be 0 to 100, but is 101
retry: {jitterPercent: ^-1}
    retry.jitterPercent: must be 0 to 100, but is -1
retry: {success: ^[]}
    retry.success: at least one status must count as success
retry: {success: [^20]}
    retry.success[0]: "20" is not a status
retry: {success: [^299-200]}
    retry.success[0]: "299-200" is not a status
retry: {success: ^200}
    retry.success: expected a list, found a whole number
retry: {neverRetry: [^600]}
    retry.neverRetry[0]: "600" is not a status
retry: {neverRetry: [400], retryOn: ^[400-410]}
    retry.retryOn: 400 is also in neverRetry
retry: {success: [404], retryOn: ^[404]}
    retry.retryOn: 404 is also in success
retry: ^{neverRetry: [200-299]}
    retry: no status counts as success; remove a status of success
retry: {leastWaits: {^50: PT1S}}
    retry.leastWaits.50: "50" is not a status
retry: {leastWaits: {503: ^PT0S}}
    retry.leastWaits.503: must be PT0.001S to P14D
retry: {retryAfterMax: ^P15D}
    retry.retryAfterMax: must be PT0S to P14D
retry: ^3
    retry: expected a mapping, found a whole number
^rety: {}
    rety: unknown field "rety"; did you mean retry?
paused: ^yes
    paused: expected true or false, found text; write true, without quotes
paused: ^'false'
    paused: expected true or false, found text; write false, without quotes
# batches
batch: {maxEvents: ^0}
    batch.maxEvents: must be 1 to 5000, but is 0
batch: {maxEvents: ^5001}
    batch.maxEvents: must be 1 to 5000, but is 5001
batch: {preferredKilobytes: ^0}
    batch.preferredKilobytes: must be 1 to 1024, but is 0
batch: {preferredKilobytes: ^1025}
    batch.preferredKilobytes: must be 1 to 1024, but is 1025
batch: {maxEvents: 2, onRefused: ^drop}
    batch.onRefused: "drop" is not a valid value; known: split, all
batch: {^maxEvent: 2}
    batch.maxEvent: unknown field "maxEvent"; did you mean maxEvents?
batch: {onRefused: ^all}
    batch.onRefused: onRefused has no effect if each event is sent in a separate request; maxEvents (maxEventsPerBatch in Event Grid) enables batches
batch: ^10
    batch: expected a mapping, found a whole number
# dead letters
deadLetter: ^never
    deadLetter: expected "none" or a mapping, found "never"; deadLetter: {sink: …}
deadLetter: ^https://user:word@h/
    deadLetter: expected "none" or a mapping, found an address; deadLetter: {sink: …}
deadLetter: ^[]
    deadLetter: expected "none" or a mapping
deadLetter: {sink: ^bucket}
    deadLetter.sink: not an address, and not a key of a Destinations document; https://…, http://…, s3://bucket/prefix or sqs://host/account/name; for a topic: {topic: namespace/topic}
deadLetter: {sink: ^letters.example.com/in}
    deadLetter.sink: the URL has no scheme; https://…, http://…, s3://bucket/prefix
deadLetter: {sink: ^s3://}
    deadLetter.sink: the bucket name is missing
deadLetter: {sink: ^s3://a}
    deadLetter.sink: a bucket name
deadLetter: {sink: ^s3://bucket/a/../b}
    deadLetter.sink: a segment of a prefix
deadLetter: {sink: ^s3://bucket/_replays}
    deadLetter.sink: the folder "_replays" in the prefix begins with _, which is reserved
deadLetter: {sink: ^sqs://lost}
    deadLetter.sink: "lost" is not a queue: expected host/account/name, which is the queue URL without https://; sqs://sqs.REGION.amazonaws.com/ACCOUNT/NAME
deadLetter: {sink: ^sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost.fifo}
    deadLetter.sink: lost.fifo is a FIFO queue
deadLetter: {sink: ^sqs://sqs.eu-west-1.amazonaws.com/1234/lost}
    deadLetter.sink: "1234" is not an account: expected 12 digits
deadLetter: {sink: ^'https://'}
    deadLetter.sink: not a valid URL: empty host
deadLetter: {sink: ^{ref: {kind: Broker}}}
    deadLetter.sink: a sink must be an address or a topic; for a topic: {topic: namespace/topic}
deadLetter: {sink: {topic: ^lost}}
    deadLetter.sink.topic: not the name of a topic; for a topic:
deadLetter: {sink: {topic: n/t, ^uri: a}}
    deadLetter.sink.uri: unknown field "uri"
deadLetter: {sink: {topic: ^n/lost}}
    deadLetter.sink.topic: the topic n/lost is not in any of the files; known: n/t
deadLetter: {sink: {topic: ^n/tt}}
    deadLetter.sink.topic: the topic n/tt is not in any of the files; did you mean n/t?
# formats and times of dead letters
deadLetter: {format: ^namespaces}
    deadLetter.format: "namespaces" is not a valid value; did you mean namespace?
deadLetter: {layout: ^flats}
    deadLetter.layout: "flats" is not a valid value; did you mean flat?
delay: ^P8D
    delay: must be PT0S to P7D
deadLetter: {delay: ^PT16M}
    deadLetter.delay: must be PT0S to PT15M
deadLetter: {keepTryingFor: ^PT1S}
    deadLetter.keepTryingFor: must be PT1M to P3D
deadLetter: {response: ^nothing}
    deadLetter.response: "nothing" is not a valid value; known: beginning, none
deadLetter: {errorData: ^base65}
    deadLetter.errorData: "base65" is not a valid value; did you mean base64?
# filters
filter: ^{}
    filter: the filter has no condition
filter: ^[]
    filter: expected a mapping, found a list
filter: {exact: {^data.total: 5}}
    filter.exact.data.total: "data.total" is not the name of an attribute; filters match only attributes, not data: names of lower-case letters and digits (CloudEvents), and eventType, eventTime, dataVersion, metadataVersion (Event Grid); if the Topic has input: custom, filters match top-level members of JSON
filter: {not: {any: [{suffix: {^orderKind: x}}]}}
    filter.not.any[0].suffix.orderKind: "orderKind" is not the name of an attribute
filter: {prefix: {^'': x}}
    filter.prefix.: "" is not the name of an attribute
filter: {^exakt: {a: b}}
    filter.exakt: unknown field "exakt"; did you mean exact?
filter: {exact: ^{}}
    filter.exact: no attribute to compare
filter: {exact: {a: ^1.5}}
    filter.exact.a: expected text, found a number with a fraction; write it in quotes
filter: {any: ^[]}
    filter.any: at least one condition
filter: {cesql: ^5}
    filter.cesql: expected text, found a whole number
filter: {cesql: ^"type LIKE 'a"}
    filter.cesql: at character 11: the string has no closing quote
filter: {all: [{cesql: ^lenght(type) > 3}]}
    filter.all[0].cesql: at character 1: no function LENGHT accepts 1 arguments
filter: {all: ^{exact: {a: b}}}
    filter.all: expected a list, found a mapping
filter: {all: [{prefix: {a: ^[]}}]}
    filter.all[0].prefix.a: expected text, found a list
"#;

/// Subscriptions, whose address is the only one that they need.
const DESTINATIONS: &str = r#"
# addresses and limits
^paused: true
    destination: destination is missing
destination: ^{}
    destination.url: url is missing
destination: {url^: }
    destination.url: expected text, found nothing
destination: {url: ^somewhere}
    destination.url: not an address, and not a key
destination: {url: ^'http://'}
    destination.url: not a valid URL: empty host
destination: {url: ^ftp://h/}
    destination.url: the scheme "ftp" is not supported; http://… or https://…
destination: {url: ^api.example.com/hook}
    destination.url: the URL has no scheme; http://… or https://…
destination: {url: ^'localhost:8080/x'}
    destination.url: the URL has no scheme
destination: {url: ^//host/x}
    destination.url: the URL has no scheme
destination: {url: ^'http://https://h/'}
    destination.url: the URL has two schemes
destination: {url: ^s3://bucket}
    destination.url: a container can receive only dead letters, not events; https://… or
destination: {url: ^sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost}
    destination.url: a queue can receive only dead letters, not events; https://… or http://…
destination: {url: http://h/, schema: ^cloudevents}
    destination.schema: "cloudevents" is not a valid value; known: cloudevents-structured, cloudevents-binary, eventgrid, custom
destination: {url: http://h/, timeout: ^PT11M}
    destination.timeout: must be PT0.001S to PT10M, but is "PT11M"
destination: {url: http://h/, timeout: ^PT0S}
    destination.timeout: must be PT0.001S
destination: {url: http://h/, lateResponseWindow: ^PT11M}
    destination.lateResponseWindow: must be PT0S to PT10M, but is "PT11M"
destination: {url: http://h/, probation: ^PT1M}
    destination.probation: expected true or false, found text
destination: {url: http://h/, maxConcurrency: ^0}
    destination.maxConcurrency: must be 1 to 1000, but is 0
destination: {url: http://h/, maxConcurrency: ^1001}
    destination.maxConcurrency: must be 1 to 1000, but is 1001
# signing
destination: {url: http://h/, signing: ^{}}
    destination.signing.secrets: secrets is missing
destination: {url: http://h/, signing: ^env:A}
    destination.signing: expected a mapping, found text
destination: {url: http://h/, signing: {secrets: ^env:A}}
    destination.signing.secrets: expected a list, found text
destination: {url: http://h/, signing: {secrets: ^[]}}
    destination.signing.secrets: must be a list of 1 to 10 secrets, but has 0
destination: {url: http://h/, signing: {secrets: [^whsec_MfKQ9r8GKYq]}}
    destination.signing.secrets[0]: not the name of a secret; a secret is env:NAME, secretsmanager:ID, secretsmanager:ID#MEMBER or ssm:NAME
destination: {url: http://h/, signing: {secrets: [env:A, ^env:A]}}
    destination.signing.secrets[1]: the secret "env:A" is listed twice
destination: {url: http://h/, signing: {secrets: [env:A], ^key: x}}
    destination.signing.key: unknown field "key"; known: publicKeys, secrets
destination: {url: http://h/, signing: {secrets: [env:A], publicKeys: ^[]}}
    destination.signing.publicKeys: must be a list of 1 to 10 public keys, but has 0
destination: {url: http://h/, signing: {secrets: [env:A], publicKeys: [^whsk_hush]}}
    destination.signing.publicKeys[0]: not a public key; a public key is whpk_ followed by the base64 of a 32-byte Ed25519 key; keep the private key (whsk_) in a store of secrets
destination: {url: http://h/, signing: {secrets: [env:A], publicKeys: ['whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=', ^'whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=']}}
    destination.signing.publicKeys[1]: the public key "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=" is listed twice
# headers
destination: {url: http://h/, headers: [^{name: a}]}
    destination.headers[0]: value, path or secret is missing
destination: {url: http://h/, headers: [^{name: a, value: b, path: c}]}
    destination.headers[0]: set only one of value, path and secret
destination: {url: http://h/, headers: [^{name: a, path: c, secret: env:A}]}
    destination.headers[0]: set only one of value, path and secret
destination: {url: http://h/, headers: [{name: a, path: ^'$..x'}]}
    destination.headers[0].path: not a path; a path selects one value, such as $.data.order.id
destination: {url: http://h/, headers: [{name: a, secret: ^hunter2}]}
    destination.headers[0].secret: not the name of a secret; a secret is env:NAME
destination: {url: http://h/, headers: [{name: a, secret: ^7}]}
    destination.headers[0].secret: expected text, found a whole number
destination: {url: http://h/, headers: [{name: a, value: ^"x\r\ny"}]}
    destination.headers[0].value: the value of a header cannot have control characters, or spaces at either end
destination: {url: http://h/, headers: [{name: a, value: x}, ^{name: A, value: y}]}
    destination.headers[1]: the header "A" is listed twice
# names of headers
destination: {url: http://h/, headers: [{name: ^Ce-Id, value: x}]}
    destination.headers[0].name: the header "Ce-Id" cannot be set by a subscription
destination: {url: http://h/, headers: [{name: ^webhook-id, value: x}]}
    destination.headers[0].name: the header "webhook-id" cannot be set
destination: {url: http://h/, headers: [{name: ^Webhook-Timestamp, value: x}]}
    destination.headers[0].name: the header "Webhook-Timestamp" cannot be set
destination: {url: http://h/, headers: [{name: ^webhook-signature, value: x}]}
    destination.headers[0].name: the header "webhook-signature" cannot be set
destination: {url: http://h/, headers: [{name: ^a b, value: x}]}
    destination.headers[0].name: "a b" is not a valid header name
destination: {url: http://h/, headers: [{name: ^Content-Type, value: x}]}
    destination.headers[0].name: the header "Content-Type" cannot be set
destination: {url: http://h/, headers: [{name: ^aeg-x, value: x}]}
    destination.headers[0].name: the header "aeg-x" cannot be set
# consent
destination: {url: http://h/, consent: ^eventgrid}
    destination.consent: expected a mapping, found text
destination: {url: http://h/, consent: ^{}}
    destination.consent.handshake: handshake is missing
destination: {url: http://h/, consent: {handshake: ^none, origin: a}}
    destination.consent.handshake: "none" is not a valid value; known: eventgrid, cloudevents
destination: {url: http://h/, consent: ^{handshake: cloudevents}}
    destination.consent.origin: origin is missing
destination: {url: http://h/, consent: {handshake: cloudevents, origin: ^https://a.example.com}}
    destination.consent.origin: not a DNS name, such as events.example.com
destination: {url: http://h/, consent: {handshake: cloudevents, origin: ^''}}
    destination.consent.origin: not a DNS name
destination: {url: http://h/, consent: {handshake: cloudevents, origin: ^a..b}}
    destination.consent.origin: not a DNS name
destination: {url: http://h/, consent: {handshake: cloudevents, origin: ^-a.b}}
    destination.consent.origin: not a DNS name
destination: {url: http://h/, consent: {handshake: cloudevents, origin: ^'*'}}
    destination.consent.origin: not a DNS name
destination: {url: http://h/, consent: {handshake: cloudevents, origin: a, rate: ^0}}
    destination.consent.rate: must be 1 to 1000000, but is 0
destination: {url: http://h/, consent: {handshake: cloudevents, origin: a, ^every: 1}}
    destination.consent.every: unknown field "every"
destination: {url: http://h/, consent: {handshake: eventgrid, ^origin: a}}
    destination.consent.origin: origin is not allowed with handshake: eventgrid; handshake: cloud
destination: {url: http://h/, consent: {handshake: eventgrid, ^rate: 1}}
    destination.consent.rate: rate is not allowed with handshake: eventgrid
# auth and tls
destination: {url: http://h/, auth: ^{}}
    destination.auth: the kind is missing; basic, bearer, header, oauth2, clientCertificate, sigv4, awsIdentity
destination: {url: http://h/, auth: ^{bearer: {token: env:A}, basic: {}}}
    destination.auth: auth must have exactly one kind; basic, bearer, header, oauth2, clientCertificate, sigv4, awsIdentity
destination: {url: http://h/, auth: ^bearer}
    destination.auth: expected a mapping, found text
destination: {url: http://h/, auth: {bearer: ^{}}}
    destination.auth.bearer.token: token is missing
destination: {url: http://h/, auth: {bearer: {token: ^hunter2}}}
    destination.auth.bearer.token: not the name of a secret; a secret is env:NAME
destination: {url: http://h/, auth: {basic: {user: ^'a:b', password: env:A}}}
    destination.auth.basic.user: the user must not be empty or contain a colon
destination: {url: http://h/, auth: {header: {name: ^content-type, value: env:A}}}
    destination.auth.header.name: the header "content-type" cannot be set by a subscription
destination: {url: http://h/, auth: {oauth2: {tokenUrl: ^nowhere, clientId: a, clientSecret: env:C}}}
    destination.auth.oauth2.tokenUrl: not an address; https://… or http://…
destination: {url: http://h/, auth: {oauth2: {tokenUrl: http://l/, clientId: a, clientSecret: env:C, parameters: {^scope: b}}}}
    destination.auth.oauth2.parameters.scope: "scope" cannot be a parameter; set scope in its own field
destination: {url: http://h/, auth: {oauth2: {tokenUrl: http://l/, clientId: ^'', clientSecret: env:C}}}
    destination.auth.oauth2.clientId: must be 1 to 4096 bytes
destination: {url: ^http://h/, auth: {clientCertificate: {certificate: env:C, key: env:K}}}
    destination.url: a client certificate requires https; url: https://…
destination: {url: https://h/, tls: {caBundle: ^hush}}
    destination.tls.caBundle: not certificates in PEM form
destination: {url: https://h/, tls: ^{}}
    destination.tls.caBundle: caBundle is missing
destination: {url: http://h/, headers: ^[{name: X-Key, value: a}], auth: {header: {name: x-key, value: env:A}}}
    destination.headers: auth also sets the header "x-key"; set the header only in auth or only in headers
# identities at AWS
destination: {url: https://h/, auth: {sigv4: {service: ^s3, region: eu-west-1}}}
    destination.auth.sigv4.service: "s3" is not a valid value; known: execute-api, lambda, vpc-lattice-svcs
destination: {url: https://h/, auth: {sigv4: {service: lambda, region: ^Ireland}}}
    destination.auth.sigv4.region: expected a region such as eu-west-1
destination: {url: https://h/, auth: {sigv4: ^{service: lambda}}}
    destination.auth.sigv4.region: region is missing
destination: {url: ^'https://lambda.eu-west-1.amazonaws.com/2015-03-31/functions/f/invocations', auth: {sigv4: {service: lambda, region: eu-west-1}}}
    destination.url: a URL of the Lambda API cannot be a destination: use destination.aws; destination: {aws: {arn: …, action: Invoke}}
destination: {url: https://h/, auth: {awsIdentity: {audience: them, lifetime: ^PT1M0.5S}}}
    destination.auth.awsIdentity.lifetime: the lifetime must be PT1M to PT1H, in whole seconds
destination: {url: https://h/, auth: {awsIdentity: {audience: ^''}}}
    destination.auth.awsIdentity.audience: must be 1 to 4096 bytes
destination: {url: https://h/, headers: ^[{name: X-Amz-Date, value: a}], auth: {sigv4: {service: lambda, region: eu-west-1}}}
    destination.headers: auth also sets the header "x-amz-date"; set the header only in auth or only in headers
"#;

/// Values in the `spec` of a Topic.
const TOPICS: &str = r#"
# input and defaults of subscriptions
input: ^snss
    input: "snss" is not a valid value; did you mean sns?
input: ^Auto
    input: "Auto" is not a valid value; did you mean auto?
input: ^7
    input: expected text, found a whole number; write it in quotes
^maping: {}
    maping: unknown field "maping"; did you mean mapping?
^deliver: {}
    deliver: unknown field "deliver"; did you mean delivery?
delivery: {destination: {^url: http://h/}}
    delivery.destination.url: a Topic cannot have url
delivery: {destination: {^aws: {arn: 'arn:aws:sqs:eu-west-1:123456789012:orders', action: SendMessage}}}
    delivery.destination.aws: a Topic cannot have aws
delivery: {^filter: {}}
    delivery.filter: unknown field "filter"
# publishers
from: ^{bucket: uploads}
    from: expected a list, found a mapping
from: [^uploads]
    from[0]: expected a mapping, found text
from: [^{}]
    from[0]: snsTopic, eventSource or bucket is missing; bucket: uploads
from: [^{bucket: uploads, eventSource: a}]
    from[0]: set only one of snsTopic, eventSource and bucket; use a separate list element for each publisher
from: [{bucket: uploads, ^prefix: a}]
    from[0].prefix: unknown field "prefix"
from: [{bucket: ^s3://uploads}]
    from[0].bucket: a bucket name is 3 to 63 letters
from: [{eventSource: ^' a'}]
    from[0].eventSource: not a valid event source; expected 1 to 256 bytes
from: [{eventSource: ^''}]
    from[0].eventSource: not a valid event source
from: [{snsTopic: ^orders}]
    from[0].snsTopic: "orders" is not the ARN of an SNS topic; such as arn:aws:sns:eu-central-1:1234
from: [{snsTopic: ^'arn:aws:sqs:eu-central-1:123456789012:orders'}]
    from[0].snsTopic: "
from: [{snsTopic: ^'arn:aws:sns:eu-central-1:12345678901:orders'}]
    from[0].snsTopic: "
from: [{snsTopic: ^'arn:aws:sns::123456789012:orders'}]
    from[0].snsTopic: "
from: [{snsTopic: ^'arn:aws:sns:eu-central-1:123456789012:or/ders'}]
    from[0].snsTopic: "
from: [{snsTopic: ^'arn:aws:sns:eu-central-1:123456789012:orders:f0'}]
    from[0].snsTopic: "
# mappings
mapping: ^[]
    mapping: expected a mapping, found a list
mapping: {^type: {field: a}}
    mapping.type: unknown field "type"; known: dataVersion, eventTime, eventType, id, subject, topic
mapping: {id: ^{}}
    mapping.id.field: field is missing
mapping: {id: ^orderId}
    mapping.id: expected a mapping, found text
mapping: {id: {field: a, ^default: b}}
    mapping.id.default: id cannot have a default; set field to a path in the event
mapping: {topic: {field: a, ^default: b}}
    mapping.topic.default: topic cannot have a default
mapping: {eventTime: {field: a, ^default: b}}
    mapping.eventTime.default: eventTime cannot have a default
mapping: {eventTime: {field: ^'a[*]'}}
    mapping.eventTime.field: not a path; a path selects one value
mapping: {eventType: ^{}}
    mapping.eventType: field or default is missing
mapping: {eventType: {field: ^'a b'}}
    mapping.eventType.field: not a path
mapping: {subject: {default: ^[]}}
    mapping.subject.default: expected text, found a list
mapping: {subject: {default: ^''}}
    mapping.subject.default: default must not be empty
mapping: {dataVersion: {^fields: a, default: b}}
    mapping.dataVersion.fields: unknown field "fields"; did you mean field?
"#;

/// Checks a `spec` after these lines, the last of which is that of the `spec`.
fn is_refused(lines: &str, marked: &str, expected: &str) {
    let reading = finds_one(&format!("{lines}  {marked}\n"), &format!("error: spec.{expected}"));
    assert_eq!(reading.findings.len(), 1, "{marked}: {:#?}", shown(&reading));
}

/// Checks a `spec` of a Subscription.
pub(super) fn is_refused_in_subscription(marked: &str, expected: &str) {
    is_refused(HEAD, marked, expected);
}

#[test]
fn each_bad_value_is_refused_at_its_position_with_what_is_right() {
    let with_url = format!("{HEAD}{URL}");
    let of_topic = format!("{TOPIC}spec:\n");
    for (lines, table) in [(&*with_url, SETTINGS), (HEAD, DESTINATIONS), (&of_topic, TOPICS)] {
        for (marked, expected) in rows(table) {
            is_refused(lines, marked, expected);
        }
    }
}

#[test]
fn what_is_too_deep_too_long_or_too_many_is_refused_at_its_position() {
    let deep =
        format!("filter: {}^{{not: {{exact: {{a: b}}}}}}{}", "{not: ".repeat(10), "}".repeat(10));
    let nested =
        format!("filter{}: conditions are nested more than 10 levels deep", ".not".repeat(10));
    is_refused(&format!("{HEAD}{URL}"), &deep, &nested);
    let many = |count: usize, element: &str| {
        let elements = (0..count).map(|number| element.replace('N', &number.to_string()) + ", ");
        elements.collect::<String>()
    };
    let publishers = format!("from: ^[{}]", many(101, "{eventSource: sN}"));
    let expected = "from: a topic has at most 100 publishers, found 101";
    is_refused(&format!("{TOPIC}spec:\n"), &publishers, expected);
    for (field, expected) in [
        (
            format!("signing: {{secrets: ^[{}]}}", many(11, "env:SN")),
            "signing.secrets: must be a list of 1 to 10 secrets, but has 11",
        ),
        (
            format!("headers: [{{name: a, value: ^{}}}]", "x".repeat(4_097)),
            "headers[0].value: the value of a header has at most 4096 bytes, but this value has \
             4097",
        ),
        (
            format!(
                "consent: {{handshake: cloudevents, origin: ^{}}}",
                ["a".repeat(63).as_str(); 4].join(".")
            ),
            "consent.origin: not a DNS name",
        ),
        (
            format!("headers: ^[{}]", many(11, "{name: hN, value: x}")),
            "headers: at most 10 headers",
        ),
    ] {
        let destination = format!("destination: {{url: http://h/, {field}}}");
        is_refused_in_subscription(&destination, &format!("destination.{expected}"));
    }
}

#[test]
fn what_depends_on_a_filter_without_a_known_operator_is_not_reported() {
    let text =
        format!("{HEAD}{URL}  filter: {{exakt: {{type: a}}}}\n  batch: {{onRefused: split}}\n");
    let found = shown(&read_one(&text));
    assert!(matches!(&found[..], [finding] if finding.contains("unknown field")), "{found:?}");
}

#[test]
fn a_value_of_an_event_is_in_no_header_that_routes_or_reads_the_request() {
    let names = [
        "content-encoding",
        "Content-Range",
        "traceparent",
        "tracestate",
        "Date",
        "http2-settings",
        "X-HTTP-Method-Override",
        "x_http_method_override",
        "x-http-method",
        "x-method-override",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "host",
        "Forwarded",
        "x-forwarded-for",
        "X-Forwarded-Host",
        "x-real-ip",
        "x-original-url",
        "x-rewrite-url",
    ];
    let file = |header: &str| {
        let text = format!("{HEAD}  destination: {{url: http://h/, headers: [{header}]}}\n");
        shown(&read_one(&text)).join("\n")
    };
    for name in names {
        let refused = file(&format!("{{name: {name}, path: data.a}}"));
        assert!(refused.contains(&format!("the header \"{name}\" cannot")), "{name}: {refused}");
    }
    for header in ["{name: x-tenant, path: data.a}", "{name: x-forwarded-proto, value: https}"] {
        assert_eq!(file(header), "", "{header}");
    }
}
