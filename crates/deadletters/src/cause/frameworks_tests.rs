//! Error bodies of web frameworks. All bodies in one row of a table must have the same cause.

use std::collections::HashMap;

use super::*;
use crate::samples::letter;

/// Bodies of one cause, and its title.
pub(super) struct Row {
    status: u16,
    bodies: &'static [&'static str],
    title: &'static str,
}

pub(super) const fn row(status: u16, title: &'static str, bodies: &'static [&'static str]) -> Row {
    Row { status, bodies, title }
}

const ROWS: [Row; 78] = [
    // FastAPI
    row(
        422,
        "422 Field required: body.customer.email",
        &[
            r#"{"detail":[{"type":"missing","loc":["body","customer","email"],"msg":"Field required","input":{"id":"c-1"},"url":"https://errors.pydantic.dev/2.5/v/missing"}]}"#,
            r#"{"detail":[{"type":"missing","loc":["body","customer","email"],"msg":"Field required","input":{"id":"c-77812"}}]}"#,
        ],
    ),
    row(
        422,
        "422 Field required: body.customer.name",
        &[
            r#"{"detail":[{"type":"missing","loc":["body","customer","name"],"msg":"Field required"}]}"#,
        ],
    ),
    row(
        422,
        "422 Field required: body.customer.email, body.customer.name",
        &[
            r#"{"detail":[{"loc":["body","customer","email"],"msg":"Field required"},{"loc":["body","customer","name"],"msg":"Field required"}]}"#,
            r#"{"detail":[{"loc":["body","customer","name"],"msg":"Field required"},{"loc":["body","customer","email"],"msg":"Field required"}]}"#,
        ],
    ),
    row(
        422,
        "422 Input should be a valid integer: body.items.<number>.quantity",
        &[
            r#"{"detail":[{"loc":["body","items",0,"quantity"],"msg":"Input should be a valid integer"}]}"#,
            r#"{"detail":[{"loc":["body","items",3,"quantity"],"msg":"Input should be a valid integer"},{"loc":["body","items",4,"quantity"],"msg":"Input should be a valid integer"}]}"#,
        ],
    ),
    row(
        404,
        "404 Order <number> not found",
        &[
            r#"{"detail":"Order 4711 not found"}"#,
            r#"{"detail":"Order 815 not found"}"#,
            r#"{"detail":"Order 99fe12ab not found"}"#,
        ],
    ),
    // Rails
    row(
        422,
        "422 can't be blank: email",
        &[
            r#"{"errors":{"email":["can't be blank"]}}"#,
            r#"{"status":422,"errors":{"email":["can't be blank"]}}"#,
        ],
    ),
    row(422, "422 can't be blank: name", &[r#"{"errors":{"name":["can't be blank"]}}"#]),
    row(
        422,
        "422 Email can't be blank",
        &[r#"{"errors":["Email can't be blank"]}"#, r#"{"error":"Email can't be blank"}"#],
    ),
    row(
        422,
        "422 Email can't be blank; Name is too short (minimum is <number> characters)",
        &[
            r#"{"errors":["Email can't be blank","Name is too short (minimum is 3 characters)"]}"#,
            r#"{"errors":["Name is too short (minimum is 3 characters)","Email can't be blank"]}"#,
        ],
    ),
    row(
        404,
        "404 Couldn't find Order with 'id'=<number>",
        &[
            r#"{"status":404,"error":"Not Found","message":"Couldn't find Order with 'id'=17"}"#,
            r#"{"status":404,"error":"Not Found","message":"Couldn't find Order with 'id'=99"}"#,
        ],
    ),
    // Laravel
    row(
        422,
        "422 The customer.email field is required",
        &[
            r#"{"message":"The customer.email field is required.","errors":{"customer.email":["The customer.email field is required."]}}"#,
        ],
    ),
    row(
        422,
        "422 The customer.email field is required; The total must be a number",
        &[
            r#"{"message":"The customer.email field is required. (and 1 more error)","errors":{"customer.email":["The customer.email field is required."],"total":["The total must be a number."]}}"#,
            r#"{"message":"The total must be a number. (and 1 more error)","errors":{"total":["The total must be a number."],"customer.email":["The customer.email field is required."]}}"#,
        ],
    ),
    row(
        500,
        "500 QueryException: SQLSTATE[23000]: Integrity constraint violation: <number> Duplicate entry <value> for key 'users.email'",
        &[
            r#"{"message":"SQLSTATE[23000]: Integrity constraint violation: 1062 Duplicate entry 'jane' for key 'users.email'","exception":"Illuminate\\Database\\QueryException","file":"/var/www/vendor/x.php","line":760,"trace":[{"file":"a"}]}"#,
            r#"{"message":"SQLSTATE[23000]: Integrity constraint violation: 1062 Duplicate entry 'bob' for key 'users.email'","exception":"Illuminate\\Database\\QueryException","file":"/var/www/vendor/x.php","line":761,"trace":[{"file":"b"#,
        ],
    ),
    // Spring
    row(
        500,
        "500 Internal Server Error",
        &[
            "",
            "Internal Server Error",
            "{}",
            r#"{"timestamp":"2026-11-20T07:03:00.123+00:00","status":500,"error":"Internal Server Error","path":"/events"}"#,
            r#"{"timestamp":"2026-11-20T07:04:00.123+00:00","status":500,"error":"Internal Server Error","message":"","path":"/hooks"}"#,
            r#"{"message":"Internal server error"}"#,
            r#"{"errors":{"detail":"Internal Server Error"}}"#,
            "<html><head><title>500 Internal Server Error</title></head><body><center><h1>500 Internal Server Error</h1></center><hr><center>nginx</center></body></html>",
        ],
    ),
    row(
        500,
        "500 Cannot invoke \"Customer.getEmail()\" because \"customer\" is null",
        &[
            r#"{"timestamp":"2026-11-20T07:03:00.123+00:00","status":500,"error":"Internal Server Error","message":"Cannot invoke \"Customer.getEmail()\" because \"customer\" is null","path":"/events"}"#,
        ],
    ),
    row(
        400,
        "400 must not be blank: customer.email",
        &[
            r#"{"timestamp":1795158180000,"status":400,"error":"Bad Request","message":"Validation failed for object='order'. Error count: 1","errors":[{"codes":["NotBlank.order.customer.email"],"arguments":[],"defaultMessage":"must not be blank","objectName":"order","field":"customer.email","rejectedValue":"","bindingFailure":false,"code":"NotBlank"}],"path":"/events"}"#,
        ],
    ),
    row(
        400,
        "400 must not be blank: customer.name",
        &[
            r#"{"timestamp":1795158180000,"status":400,"error":"Bad Request","errors":[{"defaultMessage":"must not be blank","objectName":"order","field":"customer.name","rejectedValue":"","code":"NotBlank"}],"path":"/events"}"#,
        ],
    ),
    // problem+json
    row(
        403,
        "403 You do not have enough credit: Your current balance is <number>, but that costs <number>",
        &[
            r#"{"type":"https://example.com/probs/out-of-credit","title":"You do not have enough credit.","status":403,"detail":"Your current balance is 30, but that costs 50.","instance":"/account/12345/msgs/abc","balance":30}"#,
            r#"{"type":"https://example.com/probs/out-of-credit","title":"You do not have enough credit.","status":403,"detail":"Your current balance is 7, but that costs 9.","instance":"/account/9/msgs/x"}"#,
        ],
    ),
    row(
        400,
        "400 must be a positive integer: age",
        &[
            r#"{"type":"https://example.net/validation-error","title":"Your request parameters didn't validate.","invalid-params":[{"name":"age","reason":"must be a positive integer"}]}"#,
        ],
    ),
    row(
        400,
        "400 must be 'green', 'red' or 'blue': color; must be a positive integer: age",
        &[
            r#"{"title":"Your request parameters didn't validate.","invalid-params":[{"name":"age","reason":"must be a positive integer"},{"name":"color","reason":"must be 'green', 'red' or 'blue'"}]}"#,
        ],
    ),
    row(
        422,
        "422 must be a positive integer: age",
        &[
            r##"{"type":"https://example.net/validation-error","title":"Your request is not valid.","errors":[{"detail":"must be a positive integer","pointer":"#/age"}]}"##,
        ],
    ),
    // ASP.NET
    row(
        400,
        "400 The Email field is required",
        &[
            r#"{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.1","title":"One or more validation errors occurred.","status":400,"errors":{"Email":["The Email field is required."]},"traceId":"00-84c1fd4063c38d9f3900d06e56542d48-85d1d4-00"}"#,
            r#"{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.1","title":"One or more validation errors occurred.","status":400,"errors":{"Email":["The Email field is required."]},"traceId":"00-1111fd4063c38d9f3900d06e56542d48-85d1d5-00"}"#,
        ],
    ),
    row(
        400,
        "400 The JSON value could not be converted to System.Int32: quantity",
        &[
            r#"{"title":"One or more validation errors occurred.","status":400,"errors":{"$.quantity":["The JSON value could not be converted to System.Int32. Path: $.quantity | LineNumber: 0 | BytePositionInLine: 17."]},"traceId":"00-1"}"#,
            r#"{"title":"One or more validation errors occurred.","status":400,"errors":{"$.quantity":["The JSON value could not be converted to System.Int32. Path: $.quantity | LineNumber: 3 | BytePositionInLine: 21."]},"traceId":"00-2"}"#,
        ],
    ),
    row(
        404,
        "404 Not Found",
        &[
            r#"{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.5","title":"Not Found","status":404,"traceId":"00-84c1fd4063c38d9f3900d06e56542d48-85d1d4-00"}"#,
            r#"{"detail":"Not Found"}"#,
            r#"{"detail":"Not found."}"#,
            r#"{"errors":{"detail":"Not Found"}}"#,
            r#"{"code":404,"message":"404 Not Found"}"#,
            "404 page not found",
            "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not Found</h1></center>\r\n<hr><center>nginx/1.25.3</center>\r\n</body>\r\n</html>",
        ],
    ),
    // GraphQL
    row(
        400,
        "400 Variable \"$input\" got invalid value <value> at \"input.email\"",
        &[
            r#"{"errors":[{"message":"Variable \"$input\" got invalid value \"x\" at \"input.email\"","locations":[{"line":1,"column":15}],"path":["createOrder"],"extensions":{"code":"BAD_USER_INPUT","stacktrace":["GraphQLError"]}}]}"#,
            r#"{"errors":[{"message":"Variable \"$input\" got invalid value \"y z\" at \"input.email\"","locations":[{"line":2,"column":1}],"extensions":{"code":"BAD_USER_INPUT"}}],"data":null}"#,
        ],
    ),
    row(
        400,
        "400 Cannot query field \"total\" on type \"Order\"",
        &[
            r#"{"errors":[{"message":"Cannot query field \"total\" on type \"Order\".","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}"#,
        ],
    ),
    // gRPC and Google
    row(
        400,
        "400 must not be empty: order.customer_email",
        &[
            r#"{"code":3,"message":"invalid order","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"order.customer_email","description":"must not be empty"}]}]}"#,
            r#"{"error":{"code":400,"message":"Invalid order 17","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"order.customer_email","description":"must not be empty"}]}]}}"#,
        ],
    ),
    row(
        403,
        "403 PERMISSION_DENIED: Cloud Billing API has not been used in project <number> before or it is disabled",
        &[
            r#"{"error":{"code":403,"message":"Cloud Billing API has not been used in project 123456789012 before or it is disabled.","status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"SERVICE_DISABLED","domain":"googleapis.com","metadata":{"consumer":"projects/1"}}]}}"#,
        ],
    ),
    row(
        503,
        "503 upstream not ready",
        &[r#"{"code":14,"message":"upstream not ready","details":[]}"#],
    ),
    // AWS
    row(
        400,
        "400 ValidationException: <number> validation error detected: Value null at <value> failed",
        &[
            r#"{"__type":"com.amazon.coral.validate#ValidationException","message":"1 validation error detected: Value null at 'order id' failed"}"#,
        ],
    ),
    row(
        403,
        "403 Forbidden",
        &[r#"{"message":"Forbidden"}"#, r#"{"Message":"Forbidden"}"#, "Forbidden"],
    ),
    row(
        403,
        "403 User is not authorized to access this resource with an explicit deny",
        &[r#"{"Message":"User is not authorized to access this resource with an explicit deny"}"#],
    ),
    row(
        403,
        "403 AccessDenied: Access Denied",
        &[
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message><RequestId>4442587FB7D0A2F9</RequestId><HostId>a+b=</HostId></Error>",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message><RequestId>QQ42587FB7D0A2F9</RequestId></Error>",
        ],
    ),
    row(
        403,
        "403 SignatureDoesNotMatch: The request signature we calculated does not match",
        &[
            "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error><Type>Sender</Type><Code>SignatureDoesNotMatch</Code><Message>The request signature we calculated does not match</Message></Error><RequestId>b25f48e8-84fd-11e6-80d9-574e0c4664cb</RequestId></ErrorResponse>",
        ],
    ),
    row(
        502,
        "502 TypeError: Cannot read properties of undefined (reading 'email')",
        &[
            r#"{"errorType":"TypeError","errorMessage":"Cannot read properties of undefined (reading 'email')","trace":["TypeError: x","    at Runtime.handler (/var/task/index.js:3:5)"]}"#,
        ],
    ),
    // Django REST
    row(
        400,
        "400 This field is required: email",
        &[
            r#"{"email":["This field is required."]}"#,
            r#"{"errors":{"email":["This field is required."]}}"#,
        ],
    ),
    row(
        400,
        "400 This field is required: customer.name",
        &[r#"{"customer":{"name":["This field is required."]}}"#],
    ),
    row(
        400,
        "400 Passwords do not match",
        &[r#"{"non_field_errors":["Passwords do not match."]}"#],
    ),
    row(
        400,
        "400 A valid number is required: total; This field is required: email",
        &[r#"{"email":["This field is required."],"total":["A valid number is required."]}"#],
    ),
    // Express and Nest
    row(
        400,
        "400 email must be an email",
        &[
            r#"{"statusCode":400,"message":["email must be an email"],"error":"Bad Request"}"#,
            r#"{"statusCode":400,"message":[{"target":{"email":"x"},"value":"x","property":"email","children":[],"constraints":{"isEmail":"email must be an email"}}],"error":"Bad Request"}"#,
        ],
    ),
    row(
        400,
        "400 email must be an email; name should not be empty",
        &[
            r#"{"statusCode":400,"message":["email must be an email","name should not be empty"],"error":"Bad Request"}"#,
        ],
    ),
    row(
        404,
        "404 Cannot POST /events",
        &[
            r#"{"statusCode":404,"message":"Cannot POST /events","error":"Not Found"}"#,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Error</title>\n</head>\n<body>\n<pre>Cannot POST /events</pre>\n</body>\n</html>\n",
        ],
    ),
    row(
        500,
        "500 TypeError: Cannot read properties of undefined (reading 'total')",
        &[
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<title>Error</title>\n</head>\n<body>\n<pre>TypeError: Cannot read properties of undefined (reading &#39;total&#39;)<br> &nbsp; &nbsp;at /app/index.js:12:5</pre>\n</body>\n</html>\n",
            "TypeError: Cannot read properties of undefined (reading 'total')\n    at /app/index.js:12:5",
        ],
    ),
    // JSON:API
    row(
        422,
        "422 Invalid Attribute: First name must contain at least two characters: data.attributes.firstName",
        &[
            r#"{"errors":[{"id":"b7e4e4","status":"422","source":{"pointer":"/data/attributes/firstName"},"title":"Invalid Attribute","detail":"First name must contain at least two characters."}]}"#,
            r#"{"errors":[{"id":"b7e4e5","status":"422","source":{"pointer":"/data/attributes/firstName"},"title":"Invalid Attribute","detail":"First name must contain at least two characters."}],"jsonapi":{"version":"1.1"}}"#,
        ],
    ),
    row(
        422,
        "422 Invalid Attribute: must not be empty: data.attributes.lastName",
        &[
            r#"{"errors":[{"status":"422","source":{"pointer":"/data/attributes/lastName"},"title":"Invalid Attribute","detail":"must not be empty"}]}"#,
        ],
    ),
    // Stripe and its like
    row(
        400,
        "400 parameter_missing: Missing required param: amount",
        &[
            r#"{"error":{"code":"parameter_missing","doc_url":"https://stripe.com/docs/error-codes/parameter-missing","message":"Missing required param: amount.","param":"amount","request_log_url":"https://dashboard.stripe.com/logs/req_abc","type":"invalid_request_error"}}"#,
        ],
    ),
    row(
        404,
        "404 resource_missing: No such customer: <value>",
        &[
            r#"{"error":{"code":"resource_missing","message":"No such customer: 'cus_NffrFeUfNV2Hib'","param":"customer","type":"invalid_request_error"}}"#,
            r#"{"error":{"code":"resource_missing","message":"No such customer: 'cus_PK1rFeUfNV2Aa0'","param":"customer","type":"invalid_request_error"}}"#,
        ],
    ),
    row(
        400,
        "400 Invalid value: total",
        &[r#"{"error":{"code":"invalid","message":"Invalid value","param":"total"}}"#],
    ),
    row(
        400,
        "400 Invalid value: currency",
        &[r#"{"error":{"code":"invalid","message":"Invalid value","param":"currency"}}"#],
    ),
    // Zod
    row(
        400,
        "400 Required: customer.email",
        &[
            r#"{"success":false,"error":{"issues":[{"code":"invalid_type","expected":"string","received":"undefined","path":["customer","email"],"message":"Required"}],"name":"ZodError"}}"#,
            r#"{"issues":[{"code":"invalid_type","expected":"string","path":["customer","email"],"message":"Required"}]}"#,
        ],
    ),
    row(
        400,
        "400 Required: customer.phone",
        &[
            r#"{"formErrors":[],"fieldErrors":{"customer.phone":["Required"]}}"#,
            r#"{"issues":[{"code":"invalid_type","path":["customer","phone"],"message":"Required"}]}"#,
        ],
    ),
    // Phoenix
    row(
        422,
        "422 should be at least <number> character(s): name",
        &[
            r#"{"errors":{"name":["should be at least 3 character(s)"]}}"#,
            r#"{"errors":{"name":["should be at least 5 character(s)"]}}"#,
        ],
    ),
    // Symfony
    row(
        422,
        "422 This value should not be blank: customer.email",
        &[
            r#"{"type":"https://symfony.com/errors/validation","title":"Validation Failed","status":422,"detail":"customer.email: This value should not be blank.","violations":[{"propertyPath":"customer.email","title":"This value should not be blank.","template":"This value should not be blank.","parameters":{"{{ value }}":"\"\""},"type":"urn:uuid:c1051bb4-d103-4f74-8988-acbcafc7fdc3"}]}"#,
        ],
    ),
    // OAuth, Java, Go, Python and lines
    row(
        401,
        "401 invalid_token: The access token expired",
        &[r#"{"error":"invalid_token","error_description":"The access token expired"}"#],
    ),
    row(
        500,
        "500 ORA-00942: table or view \"ORDERS\" does not exist",
        &[
            r#"{"error":{"code":"ORA-00942","message":"table or view \"ORDERS\" does not exist"}}"#,
            "ORA-00942: table or view \"ORDERS\" does not exist\n",
        ],
    ),
    row(
        500,
        "500 ValueError: invalid literal for int() with base <number>: <value>",
        &[
            "Traceback (most recent call last):\n  File \"/app/main.py\", line 12, in handle\n    int(x)\nValueError: invalid literal for int() with base 10: '12 a'\n",
            "Traceback (most recent call last):\n  File \"/app/main.py\", line 14, in handle\n    int(x)\nValueError: invalid literal for int() with base 10: '9 b'\n",
        ],
    ),
    row(
        500,
        "500 IllegalStateException: Connection pool exhausted after <duration>",
        &[
            "java.lang.IllegalStateException: Connection pool exhausted after 30012 ms\n\tat com.shop.Pool.get(Pool.java:42)",
            "java.lang.IllegalStateException: Connection pool exhausted after 3.2s\n\tat com.shop.Pool.get(Pool.java:42)",
        ],
    ),
    row(400, "400 json: unknown field \"loyalty\"", &["json: unknown field \"loyalty\"\n"]),
    row(400, "400 json: unknown field \"amount\"", &["json: unknown field \"amount\"\n"]),
    row(
        500,
        "500 soap:Server: Order is locked",
        &[
            "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Body><soap:Fault><faultcode>soap:Server</faultcode><faultstring>Order is locked</faultstring></soap:Fault></soap:Body></soap:Envelope>",
        ],
    ),
    row(
        503,
        "503 Service Unavailable",
        &[
            "",
            "<html><head><title>503 Service Temporarily Unavailable</title></head><body><center><h1>503 Service Temporarily Unavailable</h1></center></body></html>",
            "Service Unavailable",
            r#"{"message":"Service Unavailable"}"#,
        ],
    ),
    // Values that a destination rejects and repeats
    row(
        400,
        "400 <value> is not a valid choice: plan",
        &[
            r#"{"plan":["\"gold\" is not a valid choice."]}"#,
            r#"{"plan":["\"Old Gold\" is not a valid choice."]}"#,
        ],
    ),
    row(
        400,
        "400 <value> is no colour: paint.colour",
        &[
            r#"{"errors":[{"field":"paint.colour","message":"gold is no colour","rejectedValue":"gold"}]}"#,
            r#"{"errors":[{"field":"paint.colour","message":"Shoe is no colour","rejectedValue":"Shoe"}]}"#,
        ],
    ),
    // Micronaut
    row(
        400,
        "400 cart.coupon: must not be blank",
        &[
            r#"{"message":"Bad Request","_links":{"self":{"href":"/in/1"}},"_embedded":{"errors":[{"message":"cart.coupon: must not be blank"}]}}"#,
        ],
    ),
    // Hapi
    row(
        400,
        "400 \"cart[<number>].size\" is required",
        &[
            r#"{"statusCode":400,"error":"Bad Request","message":"\"cart[1].size\" is required","validation":{"source":"payload","keys":["cart.1.size"]}}"#,
            r#"{"statusCode":400,"error":"Bad Request","message":"\"cart[20].size\" is required","validation":{"keys":["cart.20.size"]}}"#,
        ],
    ),
    // Gin
    row(
        400,
        "400 failed on the 'gt' tag: Cart.Lines.<number>.Size; failed on the 'required' tag: Cart.Owner",
        &[
            r#"{"error":"Key: 'Cart.Owner' Error:Field validation for 'Owner' failed on the 'required' tag\nKey: 'Cart.Lines[0].Size' Error:Field validation for 'Size' failed on the 'gt' tag"}"#,
            "Key: 'Cart.Owner' Error:Field validation for 'Owner' failed on the 'required' tag\nKey: 'Cart.Lines[12].Size' Error:Field validation for 'Size' failed on the 'gt' tag\n",
        ],
    ),
    row(
        400,
        "400 failed on the 'required' tag: Cart.Owner",
        &[
            r#"{"error":"Key: 'Cart.Owner' Error:Field validation for 'Owner' failed on the 'required' tag"}"#,
        ],
    ),
    row(
        400,
        "400 no owner; no size",
        &["The cart has errors:\n- no size\n- no owner\n", "Errors:\n * no owner\n * no size"],
    ),
    // Rails in development
    row(
        404,
        "404 KeyError: no cart <number>",
        &[
            r##"{"status":404,"error":"Not Found","exception":"#<KeyError: no cart 7>","traces":{}}"##,
            r##"{"status":404,"error":"Not Found","exception":"#<KeyError: no cart 12>","traces":{}}"##,
        ],
    ),
    // Stripe
    row(
        402,
        "402 card_declined/lost_card: Your card was declined",
        &[
            r#"{"error":{"code":"card_declined","decline_code":"lost_card","message":"Your card was declined.","type":"card_error"}}"#,
        ],
    ),
    row(
        402,
        "402 card_declined/expired_card: Your card was declined",
        &[
            r#"{"error":{"code":"card_declined","decline_code":"expired_card","message":"Your card was declined.","type":"card_error"}}"#,
        ],
    ),
    // Play
    row(
        400,
        "400 error.path.missing: obj.cart.owner",
        &[
            r#"{"requestId":7,"error":{"obj.cart.owner":[{"msg":["error.path.missing"],"args":[]}]}}"#,
        ],
    ),
    // A proxy in front of a destination
    row(
        502,
        "502 523: Origin is unreachable",
        &[
            "<!DOCTYPE html><html><head><title>shop.example.com | 523: Origin is unreachable</title></head></html>",
        ],
    ),
    row(
        523,
        "523 Origin is unreachable",
        &[
            "<!DOCTYPE html><html><head><title>shop.example.com | 523: Origin is unreachable</title></head></html>",
        ],
    ),
    // Routes that do not exist
    row(
        404,
        "404 Not Found: /v2/carts/<number>",
        &[
            r#"{"timestamp":"2026-11-20T07:03:00.123+00:00","status":404,"error":"Not Found","path":"/v2/carts/4711"}"#,
            r#"{"timestamp":"2026-11-20T07:04:00.123+00:00","status":404,"error":"Not Found","path":"/v2/carts/4712"}"#,
        ],
    ),
    row(
        404,
        "404 Not Found: /v3/carts",
        &[r#"{"status":404,"error":"Not Found","path":"/v3/carts"}"#],
    ),
    // HAProxy
    row(
        503,
        "503 No server is there for this",
        &[
            "<html><body><h1>503 Service Unavailable</h1>\nNo server is there for this.\n</body></html>",
        ],
    ),
    // A request that is named at the end
    row(
        400,
        "400 no stock",
        &[
            "no stock (request 7f3a9c1d2b, after 3ms)",
            "no stock (request 0b9c1d2b7f)\n",
            "no stock.",
        ],
    ),
];

#[test]
fn each_row_is_one_cause_with_the_title_of_a_person() {
    let mut wrong = Vec::new();
    let mut rows: HashMap<CauseId, &str> = HashMap::new();
    for Row { status, bodies, title } in ROWS.iter().chain(&library_rows::ROWS) {
        let ids = bodies.iter().map(|body| {
            let letter = StoredDeadLetter {
                status: Some(*status),
                outcome: Some("GenericError".to_owned()),
                last_response: Some((*body).to_owned()),
                ..letter(1)
            };
            let described = describe(&letter);
            // An id of digits alone gets a different placeholder than other ids, for the same cause.
            if template::identity(&described.title.template) != template::identity(title) {
                wrong.push(format!("{title:?}\n  is {:?}\n  for {body}", described.title.template));
            }
            id_of(&described)
        });
        let ids: Vec<CauseId> = ids.collect();
        if ids.iter().any(|id| Some(id) != ids.first()) {
            wrong.push(format!("split: {title}"));
        }
        for id in ids.iter().take(1) {
            if let Some(other) = rows.insert(*id, title) {
                wrong.push(format!("joined: {title} and {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
