package fakegcstest

const xmlDocs = docs + "xml-api/"

// xmlCases returns the facts about the XML API, except for multipart uploads.
func xmlCases() []Case {
	put := func(suffix string, from, to int) Step { return xmlReq("PUT", suffix, 200).bytes(from, to) }
	return []Case{
		{
			Name: "xml", Fact: "An XML session starts with 201 and ends without a body, with the object in headers.", Source: xmlAPI, Size: q + 1,
			Steps: []Step{
				xmlReq("POST", "", 201).with("x-goog-resumable: start", "x-goog-meta-k: v", "Content-Type: text/x").has("Location: *"),
				chunk(0, q, "262145", 308, "262143"), query("*", 308, "262143"),
				chunk(q, q+1, "262145", 200, "").match(`^$`).has("x-goog-generation: *", "x-goog-stored-content-length: 262145", "x-goog-hash: crc32c={crc32c:262145}"),
				get("", 200).match(text("k", "v"), text("contentType", "text/x")),
			},
		}, {
			Name: "xml-put", Fact: "An XML PUT takes an object in one request.", Source: xmlDocs + "put-object-upload", Size: 9,
			Steps: []Step{
				put("", 0, 9).has("x-goog-generation: *", "x-goog-hash: crc32c={crc32c:9}", "ETag: *"),
				xmlReq("HEAD", "", 200).has("x-goog-stored-content-length: 9", "Content-Length: 9"),
				xmlReq("GET", "", 206).with("Range: bytes=2-4").text(small(2, 5)),
			},
		}, {
			Name: "xml-headers", Fact: "In the XML API, metadata is sent and returned in headers.", Source: xmlDocs + "reference-headers", Size: 9,
			Steps: []Step{
				put("", 0, 9).with("Content-Type: text/x", "Cache-Control: no-store", "Content-Disposition: inline", "Content-Language: de", "x-goog-meta-a: 1", "x-goog-storage-class: NEARLINE").save(`g=(?m)^X-Goog-Generation: (\d+)`),
				xmlReq("GET", "", 200).text(small(0, 9)).has(
					"Content-Type: text/x", "Cache-Control: no-store", "Content-Disposition: inline", "Content-Language: de", "x-goog-meta-a: 1", "x-goog-storage-class: NEARLINE",
					"x-goog-generation: {g}", "x-goog-metageneration: 1", "x-goog-hash: crc32c={crc32c:9}", "x-goog-hash: md5={md5:9}", "ETag: *", "Last-Modified: *",
				),
				get("", 200).match(text("contentType", "text/x"), text("cacheControl", "no-store"), text("a", "1"), text("storageClass", "NEARLINE"), text("generation", "{g}")),
			},
		}, {
			Name: "xml-preconditions", Fact: "In the XML API, preconditions come in headers.", Source: precond, Size: 9,
			Steps: []Step{
				put("", 0, 9).with("x-goog-if-generation-match: 0").save(`g=(?m)^X-Goog-Generation: (\d+)`),
				put("", 0, 5).with("x-goog-if-generation-match: 0").status(412).match(code("PreconditionFailed")),
				xmlReq("GET", "", 200).with("x-goog-if-generation-match: {g}", "x-goog-if-metageneration-match: 1"), xmlReq("GET", "", 412).with("x-goog-if-generation-match: 1").match(code("PreconditionFailed")),
				xmlReq("GET", "", 412).with("x-goog-if-metageneration-match: 2"), xmlReq("DELETE", "", 412).with("x-goog-if-generation-match: 1"),
			},
		}, {
			Name: "xml-delete", Fact: "In the XML API, DELETE is 204, and what isn't there is 404 NoSuchKey.", Source: xmlCodes, None: true,
			Steps: []Step{
				put("", 0, 9), xmlReq("DELETE", "", 204), xmlReq("GET", "", 404).match(`^<\?xml`, `<Error>`, code("NoSuchKey"), `<Message>.+</Message>`).has("Content-Type: application/xml; charset=UTF-8"),
				xmlReq("HEAD", "", 404).match("^$"), xmlReq("DELETE", "", 404).match(code("NoSuchKey")),
			},
		}, {
			Name: "xml-errors", Fact: "The XML API has a code for each error.", Source: xmlCodes, Size: 9,
			Steps: []Step{
				put("", 0, 9), xmlReq("GET", "", 416).with("Range: bytes=9-").match(code("InvalidRange")), put("", 0, 5).with("Content-MD5: {md5:4}").status(400).match(code("BadDigest")),
				put("", 0, 5).with("x-goog-hash: crc32c={crc32c:4}").status(400).match(code("(BadDigest|CrcMismatch)")),
				{Method: "GET", Path: "/no-such-bucket-for-conformance/x", Status: 404, Match: []string{code("NoSuchBucket")}},
			},
		}, {
			Name: "xml-copy", Fact: "An XML PUT with x-goog-copy-source copies.", Source: xmlDocs + "put-object-copy", Size: 9,
			Steps: []Step{
				put("-a", 0, 9).with("x-goog-meta-a: 1", "Content-Type: text/x"), xmlReq("PUT", "", 200).with("x-goog-copy-source: /{bucket}/{object}-a").match("<CopyObjectResult", "<ETag>.+</ETag>", "<LastModified>20.+</LastModified>"),
				get("", 200).match(text("a", "1"), text("contentType", "text/x"), text("md5Hash", "{md5:9}")),
				xmlReq("PUT", "", 404).with("x-goog-copy-source: /{bucket}/{object}-b").match(code("NoSuchKey")),
			},
		}, {
			Name: "xml-list", Fact: "The XML API lists a bucket by prefix and delimiter.", Source: xmlDocs + "get-bucket-list", None: true,
			Steps: []Step{
				put("/a", 0, 3), put("/b/1", 0, 3), put("/b/2", 0, 3), put("/c", 0, 3),
				xmlReq("GET", "", 200).on("/{bucket}?prefix={object}%2F").match("<ListBucketResult", `(?s)<Key>{name}/a</Key>.*<Key>{name}/b/1</Key>.*<Key>{name}/b/2</Key>.*<Key>{name}/c</Key>`, "<Size>3</Size>", "<IsTruncated>false</IsTruncated>", "<Generation>"),
				xmlReq("GET", "", 200).on("/{bucket}?prefix={object}%2F&delimiter=/").match("<CommonPrefixes><Prefix>{name}/b/</Prefix></CommonPrefixes>", "<Key>{name}/a</Key>", "<Key>{name}/c</Key>", "!<Key>{name}/b"),
			},
		}, {
			Name: "xml-list-pages", Fact: "A listing of the XML API has pages.", Source: xmlDocs + "get-bucket-list", None: true,
			Steps: []Step{
				put("/a", 0, 3), put("/b", 0, 3), put("/c", 0, 3),
				xmlReq("GET", "", 200).on("/{bucket}?list-type=2&prefix={object}%2F&max-keys=2").match("<IsTruncated>true</IsTruncated>", "<Key>{name}/b</Key>", "!<Key>{name}/c").save("t=<NextContinuationToken>([^<]+)<"),
				xmlReq("GET", "", 200).on("/{bucket}?list-type=2&prefix={object}%2F&max-keys=2&continuation-token={t}").match("<IsTruncated>false</IsTruncated>", "<Key>{name}/c</Key>", "!<Key>{name}/b"),
				xmlReq("GET", "", 200).on("/{bucket}?prefix={object}%2F&marker={object}%2Fa").match("!<Key>{name}/a</Key>", "<Key>{name}/b</Key>", "<Key>{name}/c</Key>"),
			},
		},
	}
}
