package fakegcstest

const (
	shortText = "Invalid request.  The number of bytes uploaded is required to be equal or greater than 262144, except for the final request (it's recommended to be the exact multiple of 262144).  The received request contained 1024 bytes, which does not meet this requirement."
	gapText   = "Invalid request.  According to the Content-Range header, the upload offset is 524288 byte(s), which exceeds already uploaded size of 262144 byte(s)."
)

// uploadCases returns the facts about resumable uploads.
func uploadCases() []Case {
	return []Case{
		{
			Name: "one-request", Fact: "In a session, a PUT without Content-Range is the whole object.", Source: guide, Size: q + 1,
			Steps: []Step{start(), {To: q + 1, Status: 200, Match: []string{`"size": "262145"`}}},
		}, {
			Name: "one-request-empty", Fact: "In a session, a PUT without Content-Range and body is the empty object.", Source: goClient, Size: 0,
			Steps: []Step{start(), {Status: 200, Match: []string{`"crc32c": "AAAAAA=="`}}},
		}, {
			Name: "empty-by-range", Fact: "bytes */0 finishes the empty object.", Source: goClient, Size: 0,
			Steps: []Step{start(), query("0", 200, "none").match(`"size": "0"`)},
		}, {
			Name: "chunks", Fact: "Chunks of multiples of 256 KiB are committed; Range names the last byte; the reply to the last request has the object.", Source: guide, Size: 2*q + 1,
			Steps: []Step{
				start(), query("*", 308, "none"),
				chunk(0, q, "*", 308, "262143").has("X-GUploader-UploadID: *"), query("*", 308, "262143"),
				chunk(q, 2*q, "524289", 308, "524287"), query("524289", 308, "524287"),
				chunk(2*q, 2*q+1, "524289", 200, "").match(`"crc32c": "{crc32c:524289}"`),
			},
		}, {
			Name: "post-is-put", Fact: "POST on a session means the same as PUT.", Source: goClient, Size: q + 5,
			Steps: []Step{start(), chunk(0, q, "*", 308, "262143").post(), query("*", 308, "262143").post(), chunk(q, q+5, "262149", 200, "").post()},
		}, {
			Name: "range-md5", Fact: "A 308 has the MD5 of what is committed, in hex.", Source: "https://github.com/itchio/butler/issues/71", Size: 2 * q,
			Steps: []Step{
				start(), chunk(0, q, "*", 308, "262143").has("X-Range-MD5: {md5hex:262144}"), query("*", 308, "262143").has("X-Range-MD5: {md5hex:262144}"),
				chunk(q, 2*q, "524288", 200, ""),
			},
		}, {
			Name: "no-308", Fact: "With X-GUploader-No-308 the 308 of a chunk and of a query comes as 200 with an override header.", Source: goClient, Size: q + 1,
			Steps: []Step{
				start(), query("*", 200, "none").with("X-GUploader-No-308: yes").has("X-HTTP-Status-Code-Override: 308"),
				chunk(0, q, "*", 200, "262143").with("X-GUploader-No-308: yes").has("X-HTTP-Status-Code-Override: 308"),
				chunk(q, q+1, "262145", 200, "").with("X-GUploader-No-308: yes").match(`"size": "262145"`),
			},
		}, {
			Name: "gap", Fact: "A chunk that begins after the committed bytes is 503 with this text, and changes nothing.", Source: floci, Size: 2*q + 1,
			Steps: []Step{
				start(), chunk(0, q, "*", 308, "262143"),
				chunk(2*q, 3*q, "*", 503, "").text(gapText).has("Content-Type: text/plain; charset=utf-8"), query("*", 308, "262143"),
				chunk(q, 2*q, "*", 308, "524287"), chunk(2*q, 2*q+1, "524289", 200, ""),
			},
		}, {
			Name: "overlap", Fact: "Bytes at offsets that are committed are ignored; the rest of the chunk counts.", Source: overview, Size: 3 * q,
			Steps: []Step{
				start(), chunk(0, 2*q, "*", 308, "524287"), chunk(0, q, "*", 308, "524287"),
				chunk(q, 3*q, "786432", 200, ""),
			},
		}, {
			Name: "overlap-not-compared", Fact: "Bytes that are sent again are not compared with the committed ones.", Source: overview, Size: q + 1,
			Steps: []Step{
				start(), chunk(0, q, "*", 308, "262143"),
				{Header: []string{"Content-Range: bytes 0-262143/*"}, From: q, To: 2 * q, Status: 308, Range: "262143"},
				chunk(q, q+1, "262145", 200, ""),
			},
		}, {
			Name: "short-chunk", Fact: "A chunk below 256 KiB that isn't the last is 400 with this text, and spoils the session: a good chunk afterwards gets the same.", Source: python, None: true,
			Steps: []Step{start(), chunk(0, 1024, "*", 400, "").text(shortText), chunk(0, q, "*", 400, "").text(shortText)},
		}, {
			Name: "short-chunk-known-total", Fact: "A chunk below 256 KiB that isn't the last is 400, even if the total is known.", Source: python, None: true,
			Steps: []Step{start(), chunk(0, 1024, "262145", 400, "").text(shortText)},
		}, {
			Name: "unaligned-chunk", Fact: "A chunk above 256 KiB that is not a multiple of 256 KiB is cut down to one. (Reports differ.)", Source: "https://github.com/googleapis/google-cloud-cpp/issues/4496", Size: q + 101,
			Steps: []Step{start(), chunk(0, q+100, "*", 308, "262143"), chunk(q, q+101, "262245", 200, "")},
		}, {
			Name: "query-finalizes", Fact: "bytes */T makes the object when T bytes are committed; bytes */* never does.", Source: cpp + "8868", Size: 2 * q,
			Steps: []Step{
				start(), chunk(0, 2*q, "*", 308, "524287"), query("*", 308, "524287"), query("786432", 308, "524287"),
				query("524288", 200, "none").match(`"size": "524288"`),
			},
		}, {
			Name: "finished-answers-again", Fact: "A finished session returns its object for every request.", Source: java, Size: q,
			Steps: []Step{
				start(), chunk(0, q, "262144", 200, ""), query("*", 200, "none").match(`"size": "262144"`), query("262144", 200, "").match(`"size": "262144"`),
				query("99", 200, ""), chunk(0, q, "262144", 200, ""), chunk(q, 2*q, "*", 200, "").match(`"size": "262144"`),
			},
		}, {
			Name: "open-ended", Fact: "bytes a-*/* ends where the body ends, and finishes.", Source: "https://github.com/googleapis/nodejs-storage/blob/main/src/resumable-upload.ts", Size: q + 77,
			Steps: []Step{
				start(), chunk(0, q, "*", 308, "262143"),
				{Header: []string{"Content-Range: bytes 262144-*/*"}, From: q, To: q + 77, Status: 200},
			},
		}, {
			Name: "open-ended-total", Fact: "bytes a-*/T finishes when T bytes are there.", Source: "https://github.com/googleapis/nodejs-storage/blob/main/src/resumable-upload.ts", Size: q + 77,
			Steps: []Step{start(), {Header: []string{"Content-Range: bytes 0-*/262221"}, To: q + 77, Status: 200}},
		}, {
			Name: "chunked-transfer", Fact: "A data request without Content-Length is accepted.", Source: guide, Size: 2*q + 3,
			Steps: []Step{
				start(), {Header: []string{"Content-Range: bytes 0-262143/*"}, To: q, Chunks: true, Status: 308, Range: "262143"},
				{Header: []string{"Content-Range: bytes 262144-*/*"}, From: q, To: 2*q + 3, Chunks: true, Status: 200},
			},
		}, {
			Name: "declared-length", Fact: "With X-Upload-Content-Length the upload is finished as soon as so many bytes are there, whatever the total in Content-Range.", Source: cpp + "3346", Size: 2 * q,
			Steps: []Step{start("X-Upload-Content-Length: 524288"), chunk(0, q, "*", 308, "262143"), chunk(q, 2*q, "*", 200, "none")},
		}, {
			Name: "declared-length-differs", Fact: "A total in Content-Range that isn't the X-Upload-Content-Length of the start is 400.", None: true,
			Source: "https://github.com/googleapis/storage-testbench/blob/main/testbench/rest_server.py resumable_upload_chunk",
			Steps:  []Step{start("X-Upload-Content-Length: 524288"), chunk(0, q, "524289", 400, "")},
		}, {
			Name: "malformed-range", Fact: "A Content-Range that isn't one is 400 with this text.", Source: "https://github.com/talkiq/gcloud-aio/issues/860", None: true,
			Steps: []Step{
				start(),
				{Header: []string{"Content-Range: bytes 0-9"}, To: 10, Status: 400, Text: "Failed to parse Content-Range header."},
				{Header: []string{"Content-Range: bytes 9-0/10"}, To: 10, Status: 400, Text: "Failed to parse Content-Range header."},
			},
		}, {
			Name: "beyond-total", Fact: "A chunk that ends after the total is 400.", Source: "the total is part of the request", None: true,
			Steps: []Step{start(), chunk(0, q, "262143", 400, ""), query("*", 308, "none")},
		}, {
			Name: "cut-keeps-chunks", Fact: "If a request is cut off, multiples of 256 KiB are kept.", Source: guide, Size: 3 * q,
			Steps: []Step{
				start(),
				{Header: []string{"Content-Range: bytes 0-786431/786432"}, To: 3 * q, Cut: 2*q + 1000},
				query("786432", 308, "524287").settle(), chunk(2*q, 3*q, "786432", 200, ""),
			},
		}, {
			Name: "cut-below-granularity", Fact: "Of a request that was cut off below one granularity, nothing is kept.", Source: guide, Size: q,
			Steps: []Step{
				start(),
				{Header: []string{"Content-Range: bytes 0-262143/262144"}, To: q, Cut: q - 1},
				query("262144", 308, "none").settle(), chunk(0, q, "262144", 200, ""),
			},
		}, {
			Name: "cancel", Fact: "DELETE on a session is 499, and so is everything after it.", Source: guide, None: true,
			Steps: []Step{
				start(), chunk(0, q, "*", 308, "262143"), {Method: "DELETE", Status: 499},
				query("*", 499, "none"), chunk(q, 2*q, "*", 499, "none"), {Method: "DELETE", Status: 499},
			},
		}, {
			Name: "unknown-session", Fact: "An upload_id that never was is 404.", Source: status, None: true,
			Steps: []Step{
				{Path: "/upload/storage/v1/b/{bucket}/o?uploadType=resumable&name={object}&upload_id=nonsense", Header: []string{"Content-Range: bytes */*"}, Status: 404},
			},
		}, {
			Name: "no-bucket", Fact: "A session can't be started in a bucket that isn't there.", Source: status, None: true,
			Steps: []Step{{Method: "POST", Path: "/upload/storage/v1/b/no-such-bucket-for-conformance/o?uploadType=resumable&name=x", Status: 404, Match: []string{`"notFound"`}}},
		}, {
			Name: "no-name", Fact: "A session can't be started without an object name.", Source: status, None: true,
			Steps: []Step{{Method: "POST", Path: "/upload/storage/v1/b/{bucket}/o?uploadType=resumable", Status: 400, Match: []string{`"required"`}}},
		}, {
			Name: "names-disagree", Fact: "At the start of a session, the name in the URL and that in the body must agree.", Source: status, None: true,
			Steps: []Step{{Method: "POST", Path: startPath, Header: []string{"Content-Type: application/json"}, Body: `{"name":"other"}`, Status: 400}},
		}, {
			Name: "start-body-type", Fact: "A body of the start that isn't JSON is 400 with this text.", Source: floci, None: true,
			Steps: []Step{{Method: "POST", Path: startPath, Header: []string{"Content-Type: application/octet-stream"}, Body: `{}`, Status: 400, Text: "Unsupported content with type: application/octet-stream"}},
		}, {
			Name: "metadata", Fact: "The metadata of the start is the object's; X-Goog-Meta headers of the last request are added.", Source: overview, Size: 3,
			Steps: []Step{
				{Method: "POST", Path: startPath, Header: []string{"Content-Type: application/json; charset=UTF-8"}, Body: `{"contentType":"text/x-a","cacheControl":"no-store","metadata":{"a":"1"}}`, Status: 200, Has: []string{"Location: *"}},
				chunk(0, 3, "3", 200, "").with("X-Goog-Meta-B: 2").match(`"contentType": "text/x-a"`, `"cacheControl": "no-store"`, `"a": "1"`, `"b": "2"`),
			},
		}, {
			Name: "content-type-header", Fact: "X-Upload-Content-Type is the content type when the metadata has none.", Source: guide, Size: 3,
			Steps: []Step{start("X-Upload-Content-Type: text/x-b"), chunk(0, 3, "3", 200, "").match(`"contentType": "text/x-b"`)},
		}, {
			Name: "content-type-differs", Fact: "X-Upload-Content-Type must not differ from the content type of the metadata.", Source: "https://github.com/googleapis/google-cloud-go/issues/306", None: true,
			Steps: []Step{sendJSON("POST", startPath, `{"contentType":"text/x-a"}`, 400).with("X-Upload-Content-Type: text/x-b").match("does not match Content-Type specified in metadata")},
		}, {
			Name: "precondition-late", Fact: "A precondition of a resumable upload that fails is not seen at the start: 412 comes when all bytes are there.", Source: "https://github.com/googleapis/google-cloud-java/issues/201", None: true,
			Steps: []Step{
				{Method: "POST", Path: startPath + "&ifGenerationMatch=1", Status: 200, Has: []string{"Location: *"}},
				chunk(0, q, "*", 308, "262143"), chunk(q, q+1, "262145", 412, "").match(`"conditionNotMet"`),
			},
		}, {
			Name: "precondition-absent", Fact: "ifGenerationMatch=0 holds while there is no object, and not afterwards.", Source: precond, Size: 3,
			Steps: []Step{
				{Method: "POST", Path: startPath + "&ifGenerationMatch=0", Status: 200, Has: []string{"Location: *"}}, chunk(0, 3, "3", 200, ""),
				{Method: "POST", Path: "/upload/storage/v1/b/{bucket}/o?uploadType=media&name={object}&ifGenerationMatch=0", To: 9, Status: 412},
			},
		}, {
			Name: "hash-good", Fact: "X-Goog-Hash on the last request is compared with the object.", Source: hashes, Size: q + 9,
			Steps: []Step{start(), chunk(0, q, "*", 308, "262143"), chunk(q, q+9, "262153", 200, "").with("X-Goog-Hash: crc32c={crc32c:262153},md5={md5:262153}")},
		}, {
			Name: "hash-bad", Fact: "When X-Goog-Hash on the last request differs: 400, no object, and the session is of no use any more.", Source: hashes, None: true,
			Steps: []Step{
				start(), chunk(0, q, "*", 308, "262143"), chunk(q, q+9, "262153", 400, "").with("X-Goog-Hash: crc32c={crc32c:262152}"),
				query("262153", 410, "none"),
			},
		}, {
			Name: "hash-with-query", Fact: "The status query that finishes an upload takes X-Goog-Hash, too.", Source: hashes, None: true,
			Steps: []Step{start(), chunk(0, q, "*", 308, "262143"), query("262144", 400, "none").with("X-Goog-Hash: crc32c=AAAAAA==")},
		}, {
			Name: "hash-in-metadata", Fact: "A crc32c in the metadata of the start is a demand.", Source: hashes, None: true,
			Steps: []Step{
				{Method: "POST", Path: startPath, Header: []string{"Content-Type: application/json"}, Body: `{"crc32c":"AAAAAA=="}`, Status: 200, Has: []string{"Location: *"}},
				chunk(0, 3, "3", 400, ""),
			},
		},
	}
}
