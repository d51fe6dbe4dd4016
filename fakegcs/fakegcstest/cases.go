package fakegcstest

import (
	"fmt"
	"slices"
)

// The sources of the facts.
const (
	q = Granularity

	docs     = "https://cloud.google.com/storage/docs/"
	guide    = docs + "performing-resumable-uploads"
	overview = docs + "resumable-uploads"
	hashes   = docs + "data-validation"
	precond  = docs + "request-preconditions"
	status   = docs + "json_api/v1/status-codes"
	xmlCodes = docs + "xml-api/reference-status"
	xmlAPI   = docs + "xml-api/post-object-resumable"
	python   = "https://github.com/googleapis/python-storage/tree/main/tests/resumable_media/system"
	cpp      = "https://github.com/googleapis/google-cloud-cpp/issues/"
	java     = "https://github.com/googleapis/java-storage JsonResumableSessionFailureScenario"
	javaPart = "https://github.com/googleapis/java-storage/blob/main/google-cloud-storage/src/test/java/com/google/cloud/storage/it/ITMultipartUploadClientTest.java"
	goClient = "https://pkg.go.dev/google.golang.org/api internal/gensupport"
	rust     = "https://github.com/googleapis/google-cloud-rust/blob/main/src/storage/src/storage/perform_upload/unbuffered.rs"
	bench    = "https://github.com/googleapis/storage-testbench/blob/main/testbench/common.py"
	floci    = "recorded from the service by floci-gcp, 2026-08"
	measured = "https://github.com/kmoneil/zig-gcp/blob/main/" // has measured the service, 2026-09
)

// Cases returns the facts.
func Cases() []Case {
	return slices.Concat(
		uploadCases(), insertCases(), idempotencyCases(), nameCases(), objectCases(), preconditionCases(), readCases(), listCases(), copyCases(), composeCases(),
		keyCases(), retentionCases(), versionCases(), bucketCases(), xmlCases(), partCases(),
		moveCases(), aclCases(), policyCases(),
		recordedSessionCases(), recordedInsertCases(), recordedReplyCases(), recordedReadCases(),
	)
}

const (
	startPath  = "/upload/storage/v1/b/{bucket}/o?uploadType=resumable&name={object}"
	mediaPath  = "/upload/storage/v1/b/{bucket}/o?uploadType=media&name={object}"
	objectPath = "/storage/v1/b/{bucket}/o/{object}"
	listPath   = "/storage/v1/b/{bucket}/o?prefix={object}%2F"
	bucketPath = "/storage/v1/b/{bucket}"
	xmlPath    = "/{bucket}/{object}"
)

// Patterns for Save.
const (
	generation = `="generation":\s*"(\d+)"`
	nextPage   = `="nextPageToken":\s*"([^"]+)"`
	etagHeader = `=(?m)^Etag: (.+?)\r$`
	uploadID   = `=<UploadId>([^<]+)<`
)

// start starts a resumable upload.
func start(headers ...string) Step {
	return Step{Method: "POST", Path: startPath, Header: headers, Status: 200, Has: []string{"Location: *", "X-GUploader-UploadID: *"}}
}

// chunk returns a data request with content[from:to] and the given total.
func chunk(from, to int, total string, status int, committed string) Step {
	return Step{Header: []string{fmt.Sprintf("Content-Range: bytes %d-%d/%s", from, to-1, total)}, From: from, To: to, Status: status, Range: committed}
}

// query returns a status query.
func query(total string, status int, committed string) Step {
	return Step{Header: []string{"Content-Range: bytes */" + total}, Status: status, Range: committed}
}

// insert makes the object {object} plus suffix with content[from:to]. suffix may have
// further query parameters.
func insert(suffix string, from, to int) Step {
	return Step{Method: "POST", Path: mediaPath + suffix, From: from, To: to, Status: 200}
}

// Requests of the JSON API. suffix may extend the object's name, and have an
// operation and a query.

func get(suffix string, status int) Step {
	return Step{Method: "GET", Path: objectPath + suffix, Status: status}
}

func read(suffix, text string) Step { return get(suffix, 200).text(text) }

func del(suffix string, status int) Step {
	return Step{Method: "DELETE", Path: objectPath + suffix, Status: status}
}

func patch(suffix, body string, status int) Step {
	return sendJSON("PATCH", objectPath+suffix, body, status)
}

func sendJSON(method, path, body string, status int) Step {
	return Step{Method: method, Path: path, Header: []string{"Content-Type: application/json"}, Body: body, Status: status}
}

// xmlReq returns a request of the XML API.
func xmlReq(method, suffix string, status int) Step {
	return Step{Method: method, Path: xmlPath + suffix, Status: status}
}

func (s Step) with(headers ...string) Step { s.Header = slices.Concat(s.Header, headers); return s }
func (s Step) has(headers ...string) Step  { s.Has = slices.Concat(s.Has, headers); return s }
func (s Step) match(re ...string) Step     { s.Match = slices.Concat(s.Match, re); return s }
func (s Step) save(entries ...string) Step { s.Save = slices.Concat(s.Save, entries); return s }
func (s Step) status(code int) Step        { s.Status = code; return s }
func (s Step) text(body string) Step       { s.Text = body; return s }
func (s Step) body(text string) Step       { s.Body = text; return s }
func (s Step) bytes(from, to int) Step     { s.From, s.To = from, to; return s }
func (s Step) post() Step                  { s.Method = "POST"; return s }
func (s Step) settle() Step                { s.Settle = true; return s }

// field returns a regular expression for a member of a JSON object. value is a regular
// expression, too.
func field(name, value string) string { return `"` + name + `":\s*` + value }

// text is field for a literal string.
func text(name, value string) string { return field(name, `"`+value+`"`) }

// absent returns a pattern for a missing member, see Step.Match.
func absent(name string) string { return `!"` + name + `":` }

// reason returns a regular expression for an error of the JSON API.
func reason(value string) string { return text("reason", value) }

// code returns a regular expression for an error of the XML API.
func code(value string) string { return "<Code>" + value + "</Code>" }

// small returns the content's bytes [from:to).
func small(from, to int) string { return string(Content(to)[from:]) }

// on replaces the path of s.
func (s Step) on(path string) Step { s.Path = path; return s }
