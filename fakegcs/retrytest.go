package fakegcs

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The Retry Test API of Google's storage-testbench,
// https://github.com/googleapis/storage-testbench#creating-a-new-retry-test, so
// that the conformance scenarios of client libraries,
// https://github.com/googleapis/conformance-tests/tree/main/storage/v1, run
// unchanged. A test is a list of instructions per API method; a request with
// its id in x-retry-test-id takes the next one of its method. The start, the
// data requests and the queries of an upload are all storage.objects.insert.

// retryTests are the tests that are going on.
type retryTests struct {
	mu    sync.Mutex
	tests map[string]*retryTest
}

type retryTest struct {
	ID           string              `json:"id"`
	Instructions map[string][]string `json:"instructions"` // those still to come
	Transport    string              `json:"transport"`
	Completed    bool                `json:"completed"`
}

// retryMethods are the methods of the JSON API by operation.
var retryMethods = map[Op]string{
	OpStart: "storage.objects.insert", OpPut: "storage.objects.insert", OpFinalize: "storage.objects.insert", OpQuery: "storage.objects.insert",
	OpInsert: "storage.objects.insert", OpCancel: "storage.objects.delete", OpGet: "storage.objects.get", OpRead: "storage.objects.get",
	OpList: "storage.objects.list", OpDelete: "storage.objects.delete", OpPatch: "storage.objects.patch", OpCompose: "storage.objects.compose",
	OpRewrite: "storage.objects.rewrite", OpBucketInsert: "storage.buckets.insert", OpBucketGet: "storage.buckets.get",
	OpBucketList: "storage.buckets.list", OpBucketPatch: "storage.buckets.patch", OpBucketDelete: "storage.buckets.delete",
	OpBucketLayout: "storage.buckets.getStorageLayout",
	OpRestore:      "storage.objects.restore",
}

// Those that are another form of an operation.
const (
	objectUpdate = "storage.objects.update"
	objectCopy   = "storage.objects.copy"
	bucketUpdate = "storage.buckets.update"
)

func retryMethod(q *request) string {
	switch {
	case q.op == OpPatch && q.Method == http.MethodPut:
		return objectUpdate
	case q.op == OpBucketPatch && q.Method == http.MethodPut:
		return bucketUpdate
	case q.op == OpRewrite && !q.xml && q.rest[0] == "copyTo":
		return objectCopy
	}
	return retryMethods[q.op]
}

// The instructions.
var (
	returnStatus = regexp.MustCompile(`^return-([0-9]{3})$`)
	returnAfter  = regexp.MustCompile(`^return-([0-9]{3})-after-([0-9]+)K$`)
	brokenStream = regexp.MustCompile(`^return-broken-stream(?:-after-([0-9]+)K)?$`)
	brokenFinal  = regexp.MustCompile(`^return-broken-stream-final-chunk-after-([0-9]+)B$`)
	stallAfter   = regexp.MustCompile(`^stall-for-([0-9]+)s-after-([0-9]+)K$`)
)

const resetInstruction = "return-reset-connection"

// parseInstruction turns an instruction into the fault that it stands for. At
// is the object offset that a request must carry bytes up to, or past, before
// the instruction is due; 0 is at once.
func parseInstruction(text string) (do Action, at int64, err error) {
	number := func(s string) int64 {
		n, convErr := strconv.ParseInt(s, 10, 32)
		if convErr != nil && err == nil {
			err = fmt.Errorf("instruction %q: %w", text, convErr)
		}
		return n
	}
	switch {
	case text == resetInstruction:
		return Action{Effect: EffectReset}, 0, nil
	case returnStatus.MatchString(text):
		do = Action{Effect: EffectStatus, Status: int(number(returnStatus.FindStringSubmatch(text)[1]))}
	case returnAfter.MatchString(text):
		m := returnAfter.FindStringSubmatch(text)
		at = number(m[2]) << 10
		do = Action{Effect: EffectStatusAfter, Status: int(number(m[1])), Bytes: at}
	case brokenFinal.MatchString(text):
		do = Action{Effect: EffectCutReply, Bytes: number(brokenFinal.FindStringSubmatch(text)[1])}
	case brokenStream.MatchString(text):
		do = Action{Effect: EffectCutReply}
		if k := brokenStream.FindStringSubmatch(text)[1]; k != "" {
			do.Bytes = number(k) << 10
		}
	case stallAfter.MatchString(text):
		m := stallAfter.FindStringSubmatch(text)
		at = number(m[2]) << 10
		do = Action{Effect: EffectStallBody, For: time.Duration(number(m[1])) * time.Second}
	default:
		return do, 0, fmt.Errorf("there is no instruction %q", text)
	}
	if err == nil {
		err = Fault{Do: do}.Validate()
	}
	return do, at, err
}

// take is what the retry test of q wants done to it, or nil.
func (t *retryTests) take(q *request) *Action {
	id := q.Header.Get("x-retry-test-id")
	if id == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	test, method := t.tests[id], retryMethod(q)
	if test == nil || len(test.Instructions[method]) == 0 {
		return nil
	}
	do, at, err := parseInstruction(test.Instructions[method][0])
	if err != nil || !due(q, &do, at) {
		return nil
	}
	test.Instructions[method] = test.Instructions[method][1:]
	test.Completed = true
	for left := range maps.Values(test.Instructions) {
		test.Completed = test.Completed && len(left) == 0
	}
	return &do
}

// due tells whether the time of an instruction has come, and fits it to the
// request. An instruction with an offset waits for the request that carries
// the upload past it, and a broken final reply for one that has an object as
// its answer.
func due(q *request, do *Action, at int64) bool {
	if do.Effect == EffectStallBody && q.op == OpRead {
		do.Effect, do.Bytes = EffectStallReply, at
		return true
	}
	switch do.Effect {
	case EffectStatusAfter, EffectStallBody:
		from, to, ok := q.dataSpan()
		if !ok || to >= 0 && to < at {
			return false
		}
		if do.Effect == EffectStallBody {
			do.Bytes = max(0, at-from)
		}
	case EffectCutReply:
		return q.op == OpFinalize || q.op == OpInsert || q.op == OpRead || q.op == OpQuery
	}
	return true
}

// control answers the paths under /retry_test.
func (t *retryTests) control(q *request) *reply {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := strings.TrimPrefix(strings.TrimPrefix(q.URL.Path, "/retry_test"), "/")
	test := t.tests[id]
	switch {
	case id == "" && q.Method == http.MethodPost:
		test, err := newRetryTest(q)
		if err != nil {
			return textReply(http.StatusBadRequest, err.Error()+"\n")
		}
		if t.tests == nil {
			t.tests = map[string]*retryTest{}
		}
		t.tests[test.ID] = test
		return jsonReply(http.StatusOK, test)
	case id == "" && q.Method == http.MethodGet:
		return jsonReply(http.StatusOK, map[string]any{"retry_test": slices.Collect(maps.Values(t.tests))})
	case test == nil:
		return textReply(http.StatusNotFound, "there is no retry test "+id+"\n")
	case q.Method == http.MethodGet:
		return jsonReply(http.StatusOK, test)
	case q.Method == http.MethodDelete:
		delete(t.tests, id)
		return jsonReply(http.StatusOK, test)
	}
	return textReply(http.StatusMethodNotAllowed, "Method Not Allowed\n")
}

func newRetryTest(q *request) (*retryTest, error) {
	body, refused := readMetadata(q.in)
	if refused != nil {
		return nil, refused
	}
	test := &retryTest{}
	if err := json.Unmarshal(body, test); err != nil {
		return nil, err
	}
	test.ID, test.Completed = hex.EncodeToString(randomBytes(16)), false
	if test.Transport == "" {
		test.Transport = "HTTP"
	}
	methods := slices.AppendSeq([]string{objectUpdate, objectCopy, bucketUpdate}, maps.Values(retryMethods))
	for method, list := range test.Instructions {
		if !slices.Contains(methods, method) {
			return nil, fmt.Errorf("there is no method %q", method)
		}
		for _, text := range list {
			if _, _, err := parseInstruction(text); err != nil {
				return nil, err
			}
		}
	}
	return test, nil
}
