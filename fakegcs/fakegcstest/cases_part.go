package fakegcstest

import "fmt"

const parts = docs + "multipart-uploads"

// partSize is the minimum size of a part that is not the last.
const partSize = 5 << 20

// partCases returns the facts about multipart uploads of the XML API. In each, {u} is the
// upload, and {p1}, {p2} the entity tags of its parts.
func partCases() []Case {
	initiate := func(suffix string) Step {
		return xmlReq("POST", suffix+"?uploads", 200).match("<InitiateMultipartUploadResult", "<Bucket>{bucket}</Bucket>", "<Key>{name}"+suffix+"</Key>").save("u" + uploadID)
	}
	part := func(n, from, to int) Step {
		return xmlReq("PUT", fmt.Sprintf("?partNumber=%d&uploadId={u}", n), 200).bytes(from, to).has("ETag: *").save(fmt.Sprintf("p%d", n) + etagHeader)
	}
	entry := func(n int, tag string) string {
		return fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", n, tag)
	}
	complete := func(entries ...string) Step {
		body := "<CompleteMultipartUpload>"
		for _, e := range entries {
			body += e
		}
		return xmlReq("POST", "?uploadId={u}", 200).with("Content-Type: application/xml").body(body + "</CompleteMultipartUpload>")
	}
	refused := func(s Step, want string) Step { return s.status(400).match(code(want)) }
	list := func(query string) Step { return xmlReq("GET", "?uploadId={u}"+query, 200) }
	abort := xmlReq("DELETE", "?uploadId={u}", 204)
	uploads := func(query string) Step {
		return Step{Method: "GET", Path: "/{bucket}?uploads&prefix={object}" + query, Status: 200}
	}
	key, other := newKey(1), newKey(2)
	return []Case{
		{
			Name: "parts", Fact: "Parts of a multipart upload can be sent in any order, and replaced. The object consists of those that the completion names, and has a crc32c and no MD5.", Source: parts, Size: partSize + 9,
			Steps: []Step{
				initiate("").with("Content-Type: text/x", "x-goog-meta-a: 1"), part(2, partSize, partSize+9), part(1, 0, 9), part(1, 0, partSize).has("x-goog-hash: crc32c={crc32c:5242880}"), part(3, 0, 1), get("", 404),
				complete(entry(1, "{p1}"), entry(2, "{p2}")).match("<CompleteMultipartUploadResult", "<Key>{name}</Key>", "<ETag>").has("x-goog-hash: crc32c={crc32c:5242889}"),
				get("", 200).match(text("size", "5242889"), text("crc32c", "{crc32c:5242889}"), absent("md5Hash"), text("contentType", "text/x"), text("a", "1")),
				list("").status(404).match(code("NoSuchUpload")),
			},
		}, {
			Name: "parts-last", Fact: "The last part of a multipart upload may be small, even if it is the only one.", Source: javaPart, Size: 9,
			Steps: []Step{initiate(""), part(1, 0, 9), complete(entry(1, "{p1}"))},
		}, {
			Name: "parts-empty", Fact: "The last part of a multipart upload may be empty.", Source: javaPart, Size: 0,
			Steps: []Step{initiate(""), part(1, 0, 0), complete(entry(1, "{p1}"))},
		}, {
			Name: "parts-list", Fact: "The parts of a multipart upload are listed, page by page.", Source: xmlDocs + "get-object-multipart", None: true,
			Steps: []Step{
				initiate(""), part(1, 0, 3), part(2, 3, 5), part(4, 5, 9),
				list("").match("<ListPartsResult", "<UploadId>{u}</UploadId>", "(?s)<PartNumber>1<.*<Size>3<.*<PartNumber>2<.*<Size>2<.*<PartNumber>4<.*<Size>4<", "<IsTruncated>false<"),
				list("&max-parts=2").match("<IsTruncated>true<", "<NextPartNumberMarker>2<", "<PartNumber>2<", "!<PartNumber>4<"),
				list("&max-parts=2&part-number-marker=2").match("<IsTruncated>false<", "<PartNumber>4<", "!<PartNumber>2<"),
			},
		}, {
			Name: "parts-order", Fact: "The completion of a multipart upload names parts in ascending order.", Source: xmlDocs + "post-object-complete", None: true,
			Steps: []Step{initiate(""), part(1, 0, partSize), part(2, 0, 3), refused(complete(entry(2, "{p2}"), entry(1, "{p1}")), "InvalidPartOrder"), list("")},
		}, {
			Name: "parts-unknown", Fact: "The completion of a multipart upload refuses a part that wasn't uploaded, or that has another entity tag.", Source: javaPart, None: true,
			Steps: []Step{
				initiate(""), part(1, 0, 3), part(2, 0, 5), refused(complete(entry(3, "{p1}")), "InvalidPart"), refused(complete(entry(1, `"dummytag"`)), "InvalidPart"), list(""),
			},
		}, {
			Name: "parts-none", Fact: "The completion of a multipart upload needs a part.", Source: javaPart, None: true,
			Steps: []Step{initiate(""), part(1, 0, 3), refused(complete(), "MalformedCompleteMultipartUploadRequest")},
		}, {
			Name: "parts-small", Fact: "All parts but the last have at least 5 MiB. The completion checks it.", Source: parts, None: true,
			Steps: []Step{initiate(""), part(1, 0, 3), part(2, 3, 9), refused(complete(entry(1, "{p1}"), entry(2, "{p2}")), "EntityTooSmall")},
		}, {
			Name: "parts-number", Fact: "Part numbers are 1 to 10000.", Source: parts, None: true,
			Steps: []Step{initiate(""), xmlReq("PUT", "?partNumber=0&uploadId={u}", 400).bytes(0, 3), xmlReq("PUT", "?partNumber=10001&uploadId={u}", 400).bytes(0, 3), part(10000, 0, 3)},
		}, {
			Name: "parts-hash", Fact: "x-goog-hash is compared with the part of a multipart upload.", Source: javaPart, None: true,
			Steps: []Step{
				initiate(""), xmlReq("PUT", "?partNumber=1&uploadId={u}", 400).bytes(0, 3).with("x-goog-hash: crc32c={crc32c:2}").match(code("(CrcMismatch|BadDigest)")), list("").match("!<PartNumber>"),
				part(1, 0, 3).with("x-goog-hash: crc32c={crc32c:3}"),
			},
		}, {
			Name: "parts-abort", Fact: "A multipart upload that was aborted is gone. A second abort succeeds.", Source: sentry, None: true,
			Steps: []Step{
				initiate(""), part(1, 0, 3), abort, list("").status(404).match(code("NoSuchUpload"), "The requested upload was not found."),
				xmlReq("PUT", "?partNumber=1&uploadId={u}", 404).bytes(0, 3).match(code("NoSuchUpload")), complete(entry(1, "{p1}")).status(404).match(code("NoSuchUpload")),
				abort, uploads("").match("!<Upload>"),
			},
		}, {
			Name: "parts-complete-again", Fact: "A second completion of a multipart upload succeeds, and writes nothing.", Source: sentry, Size: 9,
			Steps: []Step{
				initiate(""), part(1, 0, 9), complete(entry(1, "{p1}")), get("", 200).save("g" + generation),
				complete(entry(1, "{p1}")).match("<CompleteMultipartUploadResult", "<Key>{name}</Key>"), get("", 200).match(text("generation", "{g}"), text("metageneration", "1")),
			},
		}, {
			Name: "parts-list-last", Fact: "The last page of the parts of a multipart upload has the marker 0.", Source: transfers, None: true,
			Steps: []Step{
				initiate(""), part(1, 0, 3), part(2, 3, 5), list("").match("<IsTruncated>false<", "<NextPartNumberMarker>0<"),
				list("&max-parts=1").match("<IsTruncated>true<", "<NextPartNumberMarker>1<"), list("&max-parts=1&part-number-marker=1").match("<IsTruncated>false<", "<NextPartNumberMarker>0<"),
			},
		}, {
			Name: "parts-precondition", Fact: "A precondition of the completion is ignored.", Source: transfers, Size: 9,
			Steps: []Step{insert("", 0, 5), initiate(""), part(1, 0, 9), complete(entry(1, "{p1}")).with("x-goog-if-generation-match: 0")},
		}, {
			Name: "parts-uploads", Fact: "The multipart uploads of a bucket are listed, page by page.", Source: xmlDocs + "get-bucket-uploads", None: true,
			Steps: []Step{
				initiate("-a"), initiate("-b"), initiate("-c"),
				uploads("").match("<ListMultipartUploadsResult", "(?s)<Key>{name}-a</Key>.*<Key>{name}-b</Key>.*<Key>{name}-c</Key>.*<UploadId>{u}<", "<IsTruncated>false<"),
				uploads("&max-uploads=2").match("<IsTruncated>true<", "<NextKeyMarker>{name}-b<", "!<Key>{name}-c").save("m=<NextUploadIdMarker>([^<]+)<"),
				uploads("&max-uploads=2&key-marker={object}-b&upload-id-marker={m}").match("<IsTruncated>false<", "<Key>{name}-c<", "!<Key>{name}-b"),
			},
		}, {
			Name: "parts-key", Fact: "A multipart upload with a customer-supplied key takes parts and the completion with that key only.", Source: measured + "src/storage/encryption.zig", None: true,
			Steps: []Step{
				initiate("").with(key.headers()...), xmlReq("PUT", "?partNumber=1&uploadId={u}", 400).bytes(0, 9), xmlReq("PUT", "?partNumber=1&uploadId={u}", 400).bytes(0, 9).with(other.headers()...),
				part(1, 0, 9).with(key.headers()...), complete(entry(1, "{p1}")).status(400), complete(entry(1, "{p1}")).with(key.headers()...).has("!x-goog-hash"),
				read("?alt=media", small(0, 9)).with(key.headers()...), del("", 204),
			},
		}, {
			Name: "parts-hold", Fact: "The completion of a multipart upload over a held object is refused, and the upload stays.", Source: measured + "src/storage/retention.zig", Size: 9,
			Steps: []Step{
				insertWith("", `{"temporaryHold":true}`), initiate(""), part(1, 0, 3), complete(entry(1, "{p1}")).status(403).match(code("ObjectUnderActiveHold")), list(""),
			},
		}, {
			Name: "parts-bucket", Fact: "A multipart upload needs its bucket.", Source: xmlCodes, None: true,
			Steps: []Step{{Method: "POST", Path: "/no-such-bucket-for-conformance/x?uploads", Status: 404, Match: []string{code("NoSuchBucket")}}},
		},
	}
}
