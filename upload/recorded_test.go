package upload_test

import (
	"errors"
	"strings"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// serviceError returns an error reply of the service.
func serviceError(status int, reason, message string) faults.Action {
	return faults.Action{Effect: faults.EffectStatus, Status: status, Reason: reason, Message: message}
}

// Error replies that were recorded. Their form is that of every error of the emulator, which
// internal/compat/recorded compares with recorded ones. Sources:
//
//	FE  https://github.com/t-k/fireemu, conformance/fixtures, 2026
//	PS  https://github.com/googleapis/python-storage/issues/1541, 2025
//	SR  https://github.com/googleapis/google-cloud-go/blob/main/storage/storage.replay, 2019
//	GC  https://github.com/google/go-cloud/tree/master/blob/gcsblob/testdata, 2026
//	NC  https://github.com/nextcloud/server/issues/12537, 2018
//	LE  https://github.com/learningequality/studio/issues/964, 2018
//	GR  https://github.com/cloudyr/googleCloudStorageR/issues/122, 2020
var (
	backendError  = serviceError(503, "backendError", "Backend Error")                                                                                                                                                 // rclone/rclone#550
	internalError = serviceError(503, "internalError", "We encountered an internal error. Please try again.")                                                                                                          // documented, of the XML API
	objectLimit   = serviceError(429, "rateLimitExceeded", "The object bkt/obj exceeded the rate limit for object mutation operations (create, update, and delete).")                                                  // trinodb/trino#19943
	slowDown      = serviceError(429, "rateLimitExceeded", "Changing object bkt/obj too quickly, please slow down")                                                                                                    // NC
	invalidToken  = serviceError(401, "authError", "Invalid Credentials")                                                                                                                                              // FE
	noToken       = serviceError(401, "required", "Anonymous caller does not have storage.objects.create access to the Google Cloud Storage object.")                                                                  // SR#70
	noRight       = serviceError(403, "forbidden", "a@b.iam.gserviceaccount.com does not have storage.objects.create access to the Google Cloud Storage object. Permission denied on resource (or it may not exist).") // GC
	noBucket      = serviceError(404, "noBucket", "The specified bucket does not exist.")
	notMet        = serviceError(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")     // GC:TestIfNotExist
	damaged       = serviceError(400, "crcMismatch", `Provided CRC32C "AAAAAA==" doesn't match calculated CRC32C "BBBBBB==".`) // PS
	// The front end replies without the headers of the service.
	frontEnd408 = faults.Action{Effect: faults.EffectStatus, Status: 408, ContentType: "text/html; charset=UTF-8", // GR
		Body: "<!DOCTYPE html><html lang=en><title>Error 408 (Request Timeout)!!1</title>" + strings.Repeat(" ", 1481) + "</html>"}
	goneOfLimit = faults.Action{Effect: faults.EffectStatus, Status: 410, ContentType: "application/json; charset=UTF-8", // LE
		Body: `{"error":{"code":429,"message":"The total number of changes to the object bkt/obj exceeds the rate limit. Please reduce the rate of create, update, and delete requests.","errors":[{"domain":"usageLimits","reason":"rateLimitExceeded"}]}}`}
	noName = faults.Action{Effect: faults.EffectStatus, Status: 400, ContentType: "text/html; charset=UTF-8", // GC:write_to_empty_key_fails
		Body: `{"error":{"code":400,"message":"No object name","errors":[{"message":"No object name","domain":"global","reason":"required"}]}}`}
)

// TestRecordedReplies gives recorded error replies, and wrong ones, to the requests of an upload. It ends with the right object,
// or with the documented error and no object. It stays saved if the next call can continue it.
func TestRecordedReplies(t *testing.T) {
	t.Parallel()
	ways := map[string]struct {
		size int64
		with func(*upload.Options)
	}{
		"insert":    {100_000, func(*upload.Options) {}},
		"session":   {9 * q, func(o *upload.Options) { o.ChunkSize = 2 * q }},
		"multipart": {multipartLarge, byMultipart},
		"compose":   {partsLarge, byParts},
	}
	for _, test := range []struct {
		name, way   string
		op          faults.Op
		skip, times int
		reply       faults.Action
		want        error
		saved       int
	}{
		{"503 to a chunk", "session", faults.OpPut, 2, 1, backendError, nil, 0},
		{"408 of a front end", "session", faults.OpPut, 1, 1, frontEnd408, nil, 0},
		{"429 of the object at the start", "session", faults.OpStart, 0, 2, objectLimit, nil, 0},
		{"429 of the object at the end", "session", faults.OpFinalize, 0, 1, objectLimit, nil, 0},
		{"410 around a rate limit", "session", faults.OpFinalize, 0, 2, goneOfLimit, nil, 0},
		{"401, and a new token", "session", faults.OpPut, 1, 1, invalidToken, nil, 0},
		{"401 always", "session", faults.OpPut, 1, -1, invalidToken, session.ErrCredentials, 1},
		{"no token", "session", faults.OpStart, 0, -1, noToken, session.ErrCredentials, 0},
		{"403 at the start", "session", faults.OpStart, 0, -1, noRight, session.ErrPermission, 0},
		{"no bucket", "session", faults.OpStart, 0, -1, noBucket, session.ErrNotFound, 0},
		{"412 at the start", "session", faults.OpStart, 0, -1, notMet, session.ErrPrecondition, 0},
		{"412 at the end", "session", faults.OpFinalize, 0, -1, notMet, session.ErrPrecondition, 0},
		{"damaged in the last request", "session", faults.OpFinalize, 0, 1, damaged, nil, 0},
		{"403 in the middle", "session", faults.OpPut, 1, -1, noRight, session.ErrPermission, 1},
		{"400 in the middle", "session", faults.OpPut, 1, 1, noName, session.ErrProtocol, 1},
		{"canceled", "session", faults.OpPut, 1, 1, faults.Action{Effect: faults.EffectCanceled}, session.ErrCanceled, 0},
		{"damaged, every time", "session", faults.OpPut, 1, -1, faults.Action{Effect: faults.EffectCorrupt, Bytes: 100}, session.ErrChecksum, 0},
		{"an offset that goes back", "session", faults.OpPut, 2, 1, faults.Action{Effect: faults.EffectWrongRange, Bytes: -3 * q}, session.ErrProtocol, 0},
		{"offsets beyond", "session", "", 2, -1, faults.Action{Effect: faults.EffectWrongRange, Bytes: 2 * q}, session.ErrUnexpectedData, 0},
		{"lost four times", "session", faults.OpPut, 0, -1, faults.Action{Effect: faults.EffectNotFound}, session.ErrSessionLost, 0},
		{"503", "insert", faults.OpInsert, 0, 2, backendError, nil, 0},
		{"429 of the object", "insert", faults.OpInsert, 0, 1, objectLimit, nil, 0},
		{"408 of a front end", "insert", faults.OpInsert, 0, 1, frontEnd408, nil, 0},
		{"412", "insert", faults.OpInsert, 0, -1, notMet, session.ErrPrecondition, 0},
		{"damaged", "insert", faults.OpInsert, 0, -1, damaged, session.ErrChecksum, 0},
		{"error of the metadata", "insert", faults.OpInsert, 0, -1, noName, session.ErrInvalid, 0},
		{"403", "insert", faults.OpInsert, 0, -1, noRight, session.ErrPermission, 0},
		{"503 to a part", "multipart", faults.OpPartsPut, 1, 1, internalError, nil, 0},
		{"SlowDown", "multipart", faults.OpPartsPut, 0, 2, slowDown, nil, 0},
		{"403", "multipart", faults.OpPartsPut, 0, -1, noRight, session.ErrPermission, 1},
		{"503", "compose", faults.OpCompose, 0, 1, backendError, nil, 0},
		{"503 to a part", "compose", faults.OpPut, 2, 3, backendError, nil, 0},
		{"403", "compose", faults.OpCompose, 0, -1, noRight, session.ErrPermission, 1},
	} {
		t.Run(test.way+", "+test.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				w.addFaults(faults.Fault{Match: faults.Match{Op: test.op}, Skip: test.skip, Times: test.times, Do: test.reply})
				s, content := spec, data(ways[test.way].size)
				if test.want == session.ErrPrecondition {
					s.IfGenerationMatch = new(int64)
				}
				res, err := w.uploader(ways[test.way].with).File(w.t.Context(), w.file(content), s)
				if !errors.Is(err, test.want) || res.Resumable != (test.saved > 0) {
					t.Fatalf("%v, resumable %v, want %v\n%s", err, res.Resumable, test.want, w.trace())
				}
				w.wantSaved(test.saved)
				if test.want != nil {
					w.wantNoObject("obj")
				} else {
					w.wantFaults()
					w.wantOnlyObject(content)
				}
			})
		})
	}
}
