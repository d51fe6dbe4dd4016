package fakegcstest

const (
	resource = docs + "json_api/v1/objects#resource"
	patching = docs + "json_api/v1/how-tos/performance#patch"
	partial  = docs + "json_api#partial-response"
)

// objectCases returns the facts about the metadata of objects, and about deleting them.
func objectCases() []Case {
	return []Case{
		{
			Name: "get", Fact: "The resource of an object has these fields.", Source: resource, Size: 9,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation),
				get("", 200).match(
					text("kind", "storage#object"), text("name", "{name}"), text("bucket", "{bucket}"), text("generation", "{g}"), text("id", "{bucket}/{name}/{g}"),
					text("metageneration", "1"), text("size", "9"), text("crc32c", "{crc32c:9}"), text("md5Hash", "{md5:9}"), text("etag", ".+"),
					text("timeCreated", "20.*Z"), text("updated", "20.*Z"), text("storageClass", "[A-Z_]+"), text("selfLink", ".*/o/.*"), text("mediaLink", ".*alt=media.*"),
					absent("componentCount"), absent("metadata"), absent("timeDeleted"),
				).has("Content-Type: application/json; charset=UTF-8"),
				get("?generation={g}", 200).match(text("generation", "{g}")),
				get("?generation=1", 404),
			},
		}, {
			Name: "get-fields", Fact: "fields gives a part of the reply.", Source: partial, Size: 9,
			Steps: []Step{
				insert("", 0, 9), patch("", `{"metadata":{"a":"1","b":"2"}}`, 200),
				get("?fields=name,size", 200).match(text("name", "{name}"), text("size", "9"), absent("bucket"), absent("generation"), absent("a")),
				get("?fields=metadata/a", 200).match(text("a", "1"), absent("b"), absent("name")),
				get("?fields=name,metadata(b)", 200).match(text("b", "2"), text("name", "{name}"), absent("a")),
			},
		}, {
			Name: "fields-upload", Fact: "fields also gives a part of the reply to an upload. That of a session is in the request that starts it.", Source: "https://github.com/GoogleCloudPlatform/gsutil/blob/master/gslib/gcs_json_api.py", Size: q + 1,
			Steps: []Step{
				insert("&fields=size,crc32c", 0, 9).match(text("size", "9"), text("crc32c", "{crc32c:9}"), absent("name"), absent("generation")),
				{Method: "POST", Path: startPath + "&fields=size,crc32c", Status: 200},
				chunk(0, q, "*", 308, "262143"),
				chunk(q, q+1, "262145", 200, "").match(text("size", "262145"), text("crc32c", "{crc32c:262145}"), absent("name"), absent("generation")),
			},
		}, {
			Name: "fields-invalid", Fact: "A fields parameter that can't be parsed is 400.", Source: partial, Size: 9,
			Steps: []Step{insert("", 0, 9), get("?fields=name(", 400).match(reason("invalidParameter")), get("?fields=,", 400)},
		}, {
			Name: "batch", Fact: "A batch does its calls one by one, and answers each with its status and Content-ID.", Source: "https://cloud.google.com/storage/docs/batch", None: true,
			Steps: []Step{
				insert("", 0, 9),
				{
					Method: "POST", Path: "/batch/storage/v1", Header: []string{"Content-Type: multipart/mixed; boundary=xyz"},
					Body: "--xyz\r\nContent-Type: application/http\r\nContent-ID: <a+1>\r\n\r\nGET /storage/v1/b/{bucket}/o/{object}?fields=size HTTP/1.1\r\n\r\n\r\n" +
						"--xyz\r\nContent-Type: application/http\r\nContent-ID: <a+2>\r\n\r\nDELETE /storage/v1/b/{bucket}/o/{object} HTTP/1.1\r\n\r\n\r\n" +
						"--xyz\r\nContent-Type: application/http\r\nContent-ID: <a+3>\r\n\r\nDELETE /storage/v1/b/{bucket}/o/{object} HTTP/1.1\r\n\r\n\r\n--xyz--\r\n",
					Status: 200,
					Match:  []string{`(?s)<response-a\+1>.*HTTP/1\.1 200 .*"size": "9".*<response-a\+2>.*HTTP/1\.1 204 .*<response-a\+3>.*HTTP/1\.1 404 `},
				},
			},
		}, {
			Name: "fields-unknown", Fact: "A name in fields that the resource doesn't have is 400.", Source: "https://github.com/google/googleapis.dart/issues/23", Size: 9,
			Steps: []Step{insert("", 0, 9), get("?fields=starred", 400).match(reason("invalidParameter"), `Invalid field selection starred`), {Method: "GET", Path: "/storage/v1/b/{bucket}/o?fields=name", Status: 400}},
		}, {
			Name: "error-envelope", Fact: "An error has its code, and a list with message, domain and reason.", Source: status, None: true,
			Steps: []Step{get("", 404).match(
				`^\s*\{\s*"error":\s*\{`, field("code", "404"), text("message", "No such object: {bucket}/{name}"), field("errors", `\[\s*\{`), text("domain", "global"), reason("notFound"),
			).has("Content-Type: application/json; charset=UTF-8")},
		}, {
			Name: "delete", Fact: "A deleted object is gone.", Source: docs + "json_api/v1/objects/delete", None: true,
			Steps: []Step{insert("", 0, 9), del("", 204).match("^$"), get("", 404).match(reason("notFound")), del("", 404).match(reason("notFound")), get("?alt=media", 404)},
		}, {
			Name: "delete-generation", Fact: "A delete can name the generation.", Source: docs + "json_api/v1/objects/delete", None: true,
			Steps: []Step{insert("", 0, 9).save("g" + generation), del("?generation=1", 404), get("", 200), del("?generation={g}", 204), get("", 404)},
		}, {
			Name: "patch", Fact: "A patch changes what it names and nothing else; each is a new metageneration of the same generation.", Source: patching, Size: 9,
			Steps: []Step{
				insertWith("", `{"cacheControl":"no-store","metadata":{"a":"1","b":"2"}}`).save("g" + generation),
				patch("", `{"contentType":"text/x","metadata":{"b":null,"c":"3"}}`, 200).match(
					text("contentType", "text/x"), text("cacheControl", "no-store"), text("a", "1"), absent("b"), text("c", "3"), text("metageneration", "2"), text("generation", "{g}"),
				),
				patch("", `{"contentLanguage":"de"}`, 200).match(text("contentLanguage", "de"), text("contentType", "text/x"), text("c", "3"), text("metageneration", "3")),
				get("", 200).match(text("metageneration", "3"), text("generation", "{g}"), text("md5Hash", "{md5:9}")),
			},
		}, {
			Name: "patch-null", Fact: "In a patch, null takes a field away, and all custom metadata.", Source: patching, Size: 9,
			Steps: []Step{
				insertWith("", `{"cacheControl":"no-store","contentLanguage":"de","metadata":{"a":"1"}}`),
				patch("", `{"cacheControl":null,"metadata":null}`, 200).match(absent("cacheControl"), absent("a"), text("contentLanguage", "de")),
				get("", 200).match(absent("cacheControl"), absent("a"), text("contentLanguage", "de")),
			},
		}, {
			Name: "patch-missing", Fact: "What isn't there can't be patched.", Source: status, None: true,
			Steps: []Step{patch("", `{"contentType":"text/x"}`, 404).match(reason("notFound"))},
		}, {
			Name: "patch-malformed", Fact: "A patch with a body that isn't JSON is 400.", Source: status, Size: 9,
			Steps: []Step{insert("", 0, 9), patch("", `{"contentType":`, 400).match(reason("invalid"))},
		}, {
			Name: "user-project", Fact: "userProject may be named wherever the caller may bill the project.", Source: docs + "requester-pays", Size: 9,
			Steps: []Step{
				insert("&userProject={project}", 0, 9), get("?userProject={project}", 200).match(text("name", "{name}")), read("?alt=media&userProject={project}", small(0, 9)),
				xmlReq("GET", "", 200).with("x-goog-user-project: {project}").text(small(0, 9)),
			},
		},
	}
}

// preconditionCases returns the facts about the four preconditions.
func preconditionCases() []Case {
	failed := func(s Step) Step { return s.status(412).match(reason("conditionNotMet")) }
	return []Case{
		{
			Name: "precondition-read", Fact: "For a read, a match that fails is 412, and a not-match that fails is 304 without a body.", Source: precond, Size: 9,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation),
				get("?ifGenerationMatch={g}&ifMetagenerationMatch=1", 200), get("?ifGenerationNotMatch=1&ifMetagenerationNotMatch=2", 200),
				failed(get("?ifGenerationMatch=1", 0)), failed(get("?ifMetagenerationMatch=2", 0)), failed(get("?ifGenerationMatch=0", 0)),
				get("?ifGenerationNotMatch={g}", 304).match("^$"), get("?ifMetagenerationNotMatch=1", 304).match("^$"),
				get("?alt=media&ifGenerationMatch=1", 412), get("?alt=media&ifGenerationNotMatch={g}", 304), read("?alt=media&ifGenerationMatch={g}", small(0, 9)),
			},
		}, {
			Name: "precondition-upload", Fact: "A precondition of an upload is about the object that it replaces.", Source: precond, Size: 9,
			Steps: []Step{
				insert("&ifGenerationMatch=0", 0, 5).save("g" + generation),
				failed(insert("&ifGenerationMatch=0", 0, 7)), failed(insert("&ifGenerationMatch=1", 0, 7)), failed(insert("&ifMetagenerationMatch=2", 0, 7)),
				get("", 200).match(text("generation", "{g}"), text("size", "5")),
				insert("&ifGenerationMatch={g}&ifMetagenerationMatch=1", 0, 9),
				failed(insert("&ifGenerationMatch={g}", 0, 7)),
			},
		}, {
			Name: "precondition-not-match-write", Fact: "A not-match that fails is 304 for writes, too, and nothing is written.", Source: bench, Size: 9,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation), insert("&ifGenerationNotMatch={g}", 0, 5).status(304), patch("?ifMetagenerationNotMatch=1", `{"contentType":"text/x"}`, 304),
				del("?ifGenerationNotMatch={g}", 304), get("", 200).match(text("generation", "{g}"), text("metageneration", "1")),
			},
		}, {
			Name: "precondition-patch", Fact: "A patch has preconditions.", Source: precond, Size: 9,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation), patch("?ifMetagenerationMatch=1&ifGenerationMatch={g}", `{"contentType":"text/x"}`, 200),
				failed(patch("?ifMetagenerationMatch=1", `{"contentType":"text/y"}`, 0)), get("", 200).match(text("contentType", "text/x"), text("metageneration", "2")),
			},
		}, {
			Name: "precondition-delete", Fact: "A delete has preconditions.", Source: precond, None: true,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation), failed(del("?ifGenerationMatch=1", 0)), failed(del("?ifMetagenerationMatch=2", 0)),
				get("", 200), del("?ifGenerationMatch={g}", 204),
			},
		}, {
			Name: "precondition-malformed", Fact: "A precondition that isn't a number is 400.", Source: status, Size: 9,
			Steps: []Step{insert("", 0, 9), get("?ifGenerationMatch=x", 400)},
		},
	}
}
