package fakegcstest

import "strings"

// Recordings of the service, of autumn 2026 if nothing else is said.
const (
	rows      = "https://github.com/t-k/fireemu/blob/main/conformance/fixtures/storage-object-production/"
	answers   = "https://github.com/t-k/fireemu/tree/main/conformance/src/storage-object/recorded"
	gocloud   = "https://github.com/google/go-cloud/tree/v0.47.0/blob/gcsblob/testdata/TestConformance"
	flociNote = "https://github.com/floci-io/floci-gcp/issues/" // verified against the service, 2026-06 to 08
	transfers = measured + "docs/storage/transfers.md"
	sentry    = "https://github.com/getsentry/objectstore/pull/575" // checked with the service, 2026-07
)

// Header values of recorded replies.
const (
	noCache   = "Cache-Control: no-cache, no-store, max-age=0, must-revalidate"
	cacheable = "Cache-Control: private, max-age=0, must-revalidate, no-transform"
	htmlType  = "Content-Type: text/html; charset=UTF-8"
	jsonType  = "Content-Type: application/json; charset=UTF-8"
	textType  = "Content-Type: text/plain; charset=utf-8"
)

// recordedSessionCases returns what recordings show of resumable sessions.
func recordedSessionCases() []Case {
	const (
		crc1, crc2 = "X-Goog-Running-Hash: crc32c={crc32c:262144}", "X-Goog-Running-Hash: crc32c={crc32c:524288}"
		md51, md52 = "X-Range-MD5: {md5hex:262144}", "X-Range-MD5: {md5hex:524288}"
	)
	bare := func(s Step) Step { return s.has(textType, "!Cache-Control", "!Vary").match("^$") }
	createOnly := func() Step { s := start(); s.Path += "&ifGenerationMatch=0"; return s }
	return []Case{
		{
			Name: "incomplete-reply", Fact: "A 308 has no body, is text/plain, and has both checksums of what is committed. Without committed bytes it has neither.",
			Source: rows + "gcs--resumable-upload.json exchanges 5 and 6", Size: 2*q + 1,
			Steps: []Step{
				start(), bare(query("*", 308, "none")).has("!X-Goog-Running-Hash", "!X-Range-MD5"),
				bare(chunk(0, q, "*", 308, "262143")).has(crc1, md51), bare(query("*", 308, "262143")).has(crc1, md51),
				bare(chunk(q, 2*q, "524289", 308, "524287")).has(crc2, md52), bare(query("524289", 308, "524287")).has(crc2, md52),
				chunk(2*q, 2*q+1, "524289", 200, "").has("!X-Goog-Running-Hash", "!X-Range-MD5"),
			},
		}, {
			Name: "location-order", Fact: "The session URI has the query of the request in its order, with uploadType first and upload_id last. The reply has no body.",
			Source: rows + "gcs--resumable-upload.json exchange 4", Size: 3,
			Steps: []Step{
				createOnly().has(textType, noCache).match("^$").save(`l=(?m)^Location: (\S+\?uploadType=resumable&name=[^&\s]+&ifGenerationMatch=0&upload_id=[^&\s]+)\r$`),
				chunk(0, 3, "3", 200, ""),
			},
		}, {
			Name: "final-reply", Fact: "The last reply has the object with these fields and no others, the ETag header is its etag, and it is not cached.",
			Source: rows + "gcs--resumable-upload.json exchange 7", Size: q + 1,
			Steps: []Step{
				sendJSON("POST", startPath, `{"contentType":"text/x","metadata":{"a":"1"}}`, 200), chunk(0, q, "*", 308, "262143"),
				chunk(q, q+1, "262145", 200, "none").has(jsonType, noCache, "Pragma: no-cache", "Expires: *").save("e" + etagHeader).match(
					onlyMembers("kind id selfLink mediaLink name bucket generation metageneration contentType storageClass size md5Hash crc32c etag timeCreated updated timeStorageClassUpdated timeFinalized metadata a")...,
				),
				get("", 200).has("ETag: {e}").match(text("etag", "{e}")),
			},
		}, {
			Name: "override-only-308", Fact: "X-GUploader-No-308 changes no other status.", Source: flociNote + "132", Size: q + 1,
			Steps: []Step{
				start(), chunk(0, q, "*", 200, "262143").with("X-GUploader-No-308: yes").has("X-HTTP-Status-Code-Override: 308"),
				chunk(2*q, 3*q, "*", 503, "").with("X-GUploader-No-308: yes").has("!X-HTTP-Status-Code-Override"),
				chunk(q, q+1, "262145", 200, "none").with("X-GUploader-No-308: yes").has("!X-HTTP-Status-Code-Override"),
			},
		}, {
			Name: "cancel-reply", Fact: "A canceled session answers 499 with an error in JSON, to the cancellation and to queries.", Source: answers + " gcs-session-cancel and gcs-session-status-after-cancel", None: true,
			Steps: []Step{
				start(), clientClosed(Step{Method: "DELETE"}), clientClosed(query("*", 0, "none")), {Method: "DELETE", Status: 499}, clientClosed(query("*", 0, "none")),
			},
		}, {
			Name: "name-taken-later", Fact: "If the name of a create-only session is taken while it is open, the last chunk gets 412.", Source: transfers, Size: 9,
			Steps: []Step{createOnly(), chunk(0, q, "*", 308, "262143"), insert("", 0, 9), chunk(q, q+1, "262145", 412, "").match(reason("conditionNotMet")), get("", 200).match(text("size", "9"))},
		}, {
			Name: "hash-bad-text", Fact: "A wrong crc32c in X-Goog-Hash is 400 with both checksums in the message.", Source: "https://github.com/googleapis/python-storage/issues/1541 (2025)", None: true,
			Steps: []Step{
				start(), chunk(0, 9, "9", 400, "").with("X-Goog-Hash: crc32c={crc32c:8}").has(jsonType).match(
					reason("invalid"), text("domain", "global"), text("message", `Provided CRC32C \\"{crc32c:8}\\" doesn't match calculated CRC32C \\"{crc32c:9}\\"\.`),
				),
			},
		},
	}
}

// clientClosed expects the error of a canceled session.
func clientClosed(s Step) Step {
	return s.status(499).has(jsonType).match(field("code", "499"), text("message", "clientClosedRequest"), reason("clientClosedRequest"), text("domain", "global"))
}

// onlyMembers returns patterns for an object that has these members, on any level, and no
// others.
func onlyMembers(names string) []string {
	all := strings.Fields(names)
	patterns := []string{`^\s*\{\s*("(` + strings.Join(all, "|") + `)":\s*("[^"]*"|\{)[\s,{}]*)+$`}
	for _, name := range all {
		patterns = append(patterns, field(name, ""))
	}
	return patterns
}

// recordedInsertCases returns what recordings show of uploads in one request.
func recordedInsertCases() []Case {
	mismatch := func(kind, given, is string) string {
		return text("message", `Provided `+kind+` \\"{`+given+`}\\" doesn't match calculated `+kind+` \\"{`+is+`}\\"\.`)
	}
	nameless := func(s Step) Step { s.Path = strings.TrimSuffix(s.Path, "&name={object}"); return s }
	const untyped = "\r\n"
	return []Case{
		{
			Name: "multipart-error-type", Fact: "An error of the metadata part is JSON with the type of HTML.", Source: gocloud + "/TestWrite, and " + rows + "gcs--simple-multipart-upload.json exchange 20", None: true,
			Steps: []Step{
				nameless(multipart(related, 400, metadata(`{}`), media(9))).has(htmlType).match(reason("required"), text("message", "No object name")),
				multipart(related, 400, metadata(`{"contentType":`), media(9)).has(htmlType).match(reason("invalid"), text("message", "Parse Error.*")),
			},
		}, {
			Name: "multipart-one-part", Fact: "A multipart upload without the media part is 400 invalidPayloadSize.", Source: rows + "gcs--simple-multipart-upload.json exchange 26", None: true,
			Steps: []Step{multipart(related, 400, metadata(`{}`)).match(reason("invalidPayloadSize"), text("message", "Payload size invalid. Expected 2-3 payloads. Actual size: 1"))},
		}, {
			Name: "multipart-hash-text", Fact: "A checksum in the metadata that is wrong is 400 with both values in the message, and there is no object.", Source: rows + "gcs--checksums.json exchanges 31 and 37", None: true,
			Steps: []Step{
				multipart(related, 400, metadata(`{"md5Hash":"{md5:8}"}`), media(9)).match(reason("invalid"), mismatch("MD5 hash", "md5:8", "md5:9")), get("", 404),
				multipart(related, 400, metadata(`{"crc32c":"{crc32c:8}"}`), media(9)).match(reason("invalid"), mismatch("CRC32C", "crc32c:8", "crc32c:9")), get("", 404),
			},
		}, {
			Name: "multipart-hash-malformed", Fact: "A checksum in the metadata that is not one is 400 invalid.", Source: rows + "gcs--checksums.json exchanges 43 and 49", None: true,
			Steps: []Step{
				multipart(related, 400, metadata(`{"md5Hash":"nonsense"}`), media(9)).match(reason("invalid"), text("message", `Provided value \(nonsense\) is not a base64-encoded 128-bit MD5 hash\.`)),
				multipart(related, 400, metadata(`{"crc32c":"nonsense"}`), media(9)).match(reason("invalid"), text("message", `Invalid argument\.`)),
			},
		}, {
			Name: "name-errors", Fact: "A name that is too long, or has a line feed, is 400 invalid, as JSON with the type of HTML. The message quotes its beginning.", Source: rows + "errors--object-name.json exchanges 32 and 41", None: true,
			Steps: []Step{
				insert("{pad:1025}", 0, 9).status(400).has(htmlType).match(reason("invalid"), text("message", `The maximum object length is 1024 characters, but got a name with 1025 characters: '[^'"]+\.\.\.'`)),
				insert("%0A", 0, 9).status(400).has(htmlType).match(reason("invalid"), text("message", `Disallowed unicode characters present in object name '{name}\\n'`)),
			},
		}, {
			Name: "insert-no-type", Fact: "An object has no contentType if the upload names none.", Source: gocloud + "/TestWrite", Size: 9,
			Steps: []Step{multipart(related, 200, metadata(`{}`), untyped+small(0, 9)).match(absent("contentType")), get("", 200).match(absent("contentType"))},
		}, {
			Name: "rewrite-no-type", Fact: "A copy whose metadata is given has no contentType if that has none.", Source: answers + " rewrite-0, and " + measured + "docs/storage/emulator.md", Size: 9,
			Steps: []Step{insertWith("-a", `{}`).match(text("contentType", "text/x-media")), copyTo("rewriteTo", "-a", "", `{"metadata":{"a":"1"}}`, 200).match(text("a", "1"), absent("contentType"))},
		},
	}
}

// recordedReplyCases returns what recordings show of headers and errors.
func recordedReplyCases() []Case {
	marked := func(s Step) Step { return s.has("X-GUploader-UploadID: *", "Server: UploadServer") }
	changed := func(s Step) Step {
		return s.has(noCache, "Pragma: no-cache", "Expires: Mon, 01 Jan 1990 00:00:00 GMT", "Vary: Origin", "Vary: X-Origin")
	}
	shown := func(s Step) Step { return s.has(cacheable, "Expires: *", "Vary: Origin", "Vary: X-Origin") }
	located := func(s Step) Step {
		return s.status(412).match(reason("conditionNotMet"), text("locationType", "header"), text("location", "If-Match"), text("message", "At least one of the pre-conditions you specified did not hold."))
	}
	unmodified := func(s Step) Step { return s.status(304).match("^$") }
	list := Step{Method: "GET", Path: listPath, Status: 200}
	saveTag := `e="etag":\s*"([^"]+)"`
	const time = `20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ`
	return []Case{
		{
			Name: "service-headers", Fact: "Every reply, also of an error, names the server and has an upload ID.", Source: gocloud + " (480 of 480 replies)", None: true,
			Steps: []Step{
				marked(insert("", 0, 9)), marked(get("", 200)), marked(get("?alt=media", 200)), marked(patch("", `{"contentType":"text/x"}`, 200)), marked(list),
				marked(xmlReq("GET", "", 200)), marked(xmlReq("GET", "-missing", 404)), marked(get("-missing", 404)), marked(Step{Method: "GET", Path: bucketPath, Status: 200}), marked(del("", 204)),
			},
		}, {
			Name: "cache-headers", Fact: "Replies of changes and of errors in JSON are not cached. Metadata and lists are private.", Source: gocloud + ", and " + rows + "errors--missing.json", None: true,
			Steps: []Step{
				changed(insert("", 0, 9)), shown(get("", 200)), shown(list), changed(patch("", `{"contentType":"text/x"}`, 200)), changed(get("-missing", 404)), changed(del("-missing", 404)), del("", 204),
			},
		}, {
			Name: "etag-header", Fact: "The reply with one object has its etag as a header; lists, rewrites and errors have none.", Source: gocloud + "/TestAs, and " + rows + "gcs--copy-rewrite.json exchanges 31 and 36", Size: 9,
			Steps: []Step{
				insert("", 0, 9).has("ETag: *").save(saveTag), get("", 200).has("ETag: {e}"), list.has("!ETag"), copyTo("rewriteTo", "", "-b", `{}`, 200).has("!ETag"), copyTo("copyTo", "", "-c", `{}`, 200).has("ETag: *"), get("-missing", 404).has("!ETag"),
				patch("", `{"contentType":"text/x"}`, 200).has("ETag: *").match(`!"{e}"`),
			},
		}, {
			Name: "time-decimals", Fact: "Times have three decimals.", Source: gocloud + " (951 of 951 times)", Size: 9,
			Steps: []Step{insert("", 0, 9).match(text("timeCreated", time), text("updated", time), text("timeStorageClassUpdated", time), text("timeFinalized", time))},
		}, {
			Name: "link-escapes", Fact: "In the links of an object, these characters of the name are not escaped, and a plus is.", Source: gocloud + "/TestKeys", None: true,
			Steps: []Step{insert("%21%27%28%29%2A%3B%2C%2B", 0, 9).match(text("selfLink", `[^"]*/o/[^"/]*!'\(\)\*;,%2B`), text("mediaLink", `[^"]*/o/[^"/]*!'\(\)\*;,%2B\?[^"]*`)), del("%21%27%28%29%2A%3B%2C%2B", 204)},
		}, {
			Name: "precondition-location", Fact: "The 412 of a generation or metageneration that does not match names the header If-Match.", Source: gocloud + "/TestIfNotExist, and " + rows + "gcs--generation-preconditions.json exchange 86", Size: 9,
			Steps: []Step{
				located(insert("&ifGenerationMatch=1", 0, 9)), insert("", 0, 9), located(get("?ifGenerationMatch=1", 0)), located(patch("?ifMetagenerationMatch=7", `{"contentType":"text/x"}`, 0)), located(del("?ifGenerationMatch=1", 0)),
			},
		}, {
			Name: "not-match-reply", Fact: "The 304 of a generation or metageneration that must not match has no body, for changes, too.", Source: answers + " (probe 4)", Size: 9,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation), unmodified(insert("&ifGenerationNotMatch={g}", 0, 5)), unmodified(patch("?ifGenerationNotMatch={g}", `{"contentType":"text/x"}`, 0)),
				unmodified(sendJSON("PUT", objectPath+"?ifMetagenerationNotMatch=1", `{"contentType":"text/x"}`, 0)), unmodified(del("?ifMetagenerationNotMatch=1", 0)),
			},
		}, {
			Name: "delete-reply", Fact: "The 204 of a deleted object has the type of JSON; that of the XML API has none.", Source: gocloud + "/TestDelete, and " + rows + "gcs--resumable-upload.json exchange 14", None: true,
			Steps: []Step{insert("", 0, 9), del("", 204).has("Content-Type: application/json").match("^$"), insert("", 0, 9), xmlReq("DELETE", "", 204).has("!Content-Type").match("^$")},
		}, {
			Name: "patch-parse-error", Fact: "Metadata that is not JSON is 400 invalid with the text of the parser.", Source: answers + " gcsPatch400", Size: 9,
			Steps: []Step{insert("", 0, 9), patch("", `{"contentType":`, 400).has(jsonType).match(reason("invalid"), text("message", "Parse Error: .*"))},
		}, {
			Name: "update-replaces", Fact: "An update (PUT) removes what it does not name, and replaces all custom metadata.", Source: rows + "gcs--metadata.json exchange 10", Size: 9,
			Steps: []Step{
				insertWith("", `{"cacheControl":"private, max-age=0","metadata":{"a":"1","b":"2"}}`),
				sendJSON("PUT", objectPath, `{"contentType":"text/y","metadata":{"b":"3"}}`, 200).has("ETag: *").match(text("contentType", "text/y"), absent("cacheControl"), absent("a"), text("b", "3"), text("metageneration", "2")),
				get("", 200).match(absent("cacheControl"), absent("a"), text("b", "3"), text("md5Hash", "{md5:9}")),
			},
		}, {
			Name: "list-empty", Fact: "An empty list has its kind and nothing else.", Source: rows + "gcs--list.json exchange 1", None: true,
			Steps: []Step{list.match(`^\s*\{\s*"kind":\s*"storage#objects"\s*\}\s*$`)},
		}, {
			Name: "list-empty-parameters", Fact: "Parameters of a list that are empty mean nothing.", Source: gocloud + "/TestList", None: true,
			Steps: []Step{
				insert("%2Fa", 0, 3), insert("%2Fb%2Fc", 0, 3),
				Step{Method: "GET", Path: listPath + "&delimiter=&startOffset=&endOffset=&matchGlob=&pageToken=", Status: 200}.match(text("name", "{name}/a"), text("name", "{name}/b/c"), absent("prefixes")),
			},
		}, {
			Name: "list-token", Fact: "The token of the next page is base64. Its first byte is a line feed, before the length and the last name of the page.", Source: answers + " list-page-1, and " + gocloud + "/TestList", None: true,
			Steps: []Step{
				insert("%2Fa", 0, 3), insert("%2Fb", 0, 3),
				Step{Method: "GET", Path: listPath + "&maxResults=1", Status: 200}.match(text("nextPageToken", "C[g-v][A-Za-z0-9+/]+=*")).save("t" + nextPage),
				Step{Method: "GET", Path: listPath + "&maxResults=1&pageToken={t}", Status: 200}.match(text("name", "{name}/b"), absent("nextPageToken")),
			},
		},
	}
}

// recordedReadCases returns what recordings show of reads.
func recordedReadCases() []Case {
	const whole = "X-Goog-Hash: crc32c={crc32c:9},md5={md5:9}"
	saveTag := `e="etag":\s*"([^"]+)"`
	return []Case{
		{
			Name: "media-headers", Fact: "The bytes of an object come as an attachment, with both hashes in one line and the bare etag.", Source: rows + "gcs--download.json exchange 11", Size: 9,
			Steps: []Step{insert("", 0, 9).save(saveTag), read("?alt=media", small(0, 9)).has(whole, "Content-Disposition: attachment", "ETag: {e}", "!Accept-Ranges", noCache, "Last-Modified: *", "X-Goog-Storage-Class: *")},
		}, {
			Name: "media-range-headers", Fact: "A part of an object has no hash.", Source: rows + "gcs--download.json exchange 18", Size: 9,
			Steps: []Step{insert("", 0, 9), get("?alt=media", 206).with("Range: bytes=2-4").has("!X-Goog-Hash", "Content-Range: bytes 2-4/9")},
		}, {
			Name: "media-range-error", Fact: "A range after the end is 416 with a text, the type of HTML, and the size.", Source: rows + "errors--range.json exchange 25", Size: 9,
			Steps: []Step{insert("", 0, 9), get("?alt=media", 416).with("Range: bytes=99-").text("Request range not satisfiable").has(htmlType, "Content-Range: bytes */9", "!X-Goog-Hash")},
		}, {
			Name: "media-range-ignored", Fact: "A range that is not one is ignored; a suffix of no bytes, and a range of an empty object, are not satisfiable.", Source: rows + "errors--range.json exchanges 19, 22, 28 and 46", Size: 9,
			Steps: []Step{
				insert("", 0, 9), read("?alt=media", small(0, 9)).with("Range: invalid").has(whole), read("?alt=media", small(0, 9)).with("Range: bytes=3-1").has(whole),
				get("?alt=media", 416).with("Range: bytes=-0").text("Request range not satisfiable").has("Content-Range: bytes */9"),
				insert("-e", 0, 0), get("-e?alt=media", 416).with("Range: bytes=0-").has("Content-Range: bytes */0"),
			},
		}, {
			Name: "media-missing", Fact: "The 404 of a read has the type of HTML.", Source: rows + "errors--missing.json exchange 15", None: true,
			Steps: []Step{get("?alt=media", 404).has(htmlType).match(`^No such object: {bucket}/{name}$`)},
		}, {
			Name: "xml-read-headers", Fact: "In the XML API the ETag is the MD5, and a part has the hashes of the whole object.", Source: gocloud + "/TestRead", Size: 9,
			Steps: []Step{
				insert("", 0, 9),
				xmlReq("GET", "", 200).has(`ETag: "{md5hex:9}"`, "Accept-Ranges: bytes", "X-Goog-Hash: crc32c={crc32c:9}", "X-Goog-Hash: md5={md5:9}"), xmlReq("HEAD", "", 200).has(`ETag: "{md5hex:9}"`, "Accept-Ranges: bytes"),
				xmlReq("GET", "", 206).with("Range: bytes=2-4").text(small(2, 5)).has(`ETag: "{md5hex:9}"`, "X-Goog-Hash: crc32c={crc32c:9}", "X-Goog-Hash: md5={md5:9}"),
			},
		}, {
			Name: "xml-error-details", Fact: "The message of an XML error is that of its code. Details says more.", Source: gocloud + "/TestBeforeReadNonExistentKey, and " + rows + "errors--range.json exchange 13", Size: 9,
			Steps: []Step{
				insert("", 0, 9), xmlReq("GET", "-missing", 404).match(code("NoSuchKey"), "<Message>The specified key does not exist.</Message><Details>No such object: {bucket}/{name}-missing</Details>"),
				xmlReq("GET", "", 416).with("Range: bytes=99-").match(code("InvalidRange"), "<Message>The requested range cannot be satisfied.</Message><Details>bytes=99-</Details>"),
			},
		}, {
			Name: "xml-put-reply", Fact: "The reply to an XML PUT is empty, with the type of HTML, the hashes and the stored length, and without a storage class.", Source: gocloud + "/TestSignedURL", Size: 9,
			Steps: []Step{
				xmlReq("PUT", "", 200).bytes(0, 9).match("^$").has(htmlType, "Vary: Origin", `ETag: "{md5hex:9}"`, "X-Goog-Generation: *", "X-Goog-Metageneration: 1", "X-Goog-Stored-Content-Length: 9", "X-Goog-Stored-Content-Encoding: identity", "!X-Goog-Storage-Class", "!Last-Modified"),
			},
		}, {
			Name: "xml-metadata-case", Fact: "The names of custom metadata in headers are in lower case.", Source: transfers, Size: 9,
			Steps: []Step{xmlReq("PUT", "", 200).bytes(0, 9).with("x-goog-meta-Reviewer: a"), get("", 200).match(text("reviewer", "a"))},
		},
	}
}
