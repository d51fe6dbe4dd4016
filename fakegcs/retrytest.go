package fakegcs

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
)

// The Retry Test API of Google's storage-testbench,
// https://github.com/googleapis/storage-testbench#creating-a-new-retry-test, so
// that the conformance scenarios of client libraries,
// https://github.com/googleapis/conformance-tests/tree/main/storage/v1, run
// unchanged. A test is a list of instructions per API method. A request with the
// test's id in x-retry-test-id consumes the next instruction of its method. The
// start, the data requests and the queries of an upload are all
// storage.objects.insert.

// retryTests are the retry tests of a server.
type retryTests struct {
	mu   sync.Mutex
	list []*retryTest
}

type retryTest struct {
	ID           string              `json:"id"`
	Instructions map[string][]string `json:"instructions"` // not yet consumed
	Transport    string              `json:"transport"`
	Completed    bool                `json:"completed"`
}

// retryMethods maps operations to methods of the JSON API.
var retryMethods = map[faults.Op]string{
	faults.OpStart: "storage.objects.insert", faults.OpPut: "storage.objects.insert", faults.OpFinalize: "storage.objects.insert", faults.OpQuery: "storage.objects.insert",
	faults.OpInsert: "storage.objects.insert", faults.OpCancel: "storage.objects.delete", faults.OpGet: "storage.objects.get", faults.OpRead: "storage.objects.get",
	faults.OpList: "storage.objects.list", faults.OpDelete: "storage.objects.delete", faults.OpPatch: "storage.objects.patch", faults.OpCompose: "storage.objects.compose",
	ops.Rewrite: "storage.objects.rewrite", ops.BucketInsert: "storage.buckets.insert", faults.OpBucketGet: "storage.buckets.get",
	ops.BucketList: "storage.buckets.list", ops.BucketPatch: "storage.buckets.patch", ops.BucketDelete: "storage.buckets.delete",
	faults.OpBucketLayout: "storage.buckets.getStorageLayout",
	ops.Restore:           "storage.objects.restore",

	faults.OpBucketPermissions: "storage.buckets.testIamPermissions",
	ops.NotificationInsert:     "storage.notifications.insert", ops.NotificationGet: "storage.notifications.get",
	faults.OpNotificationList: "storage.notifications.list", ops.NotificationDelete: "storage.notifications.delete",

	ops.Move: "storage.objects.move", ops.BucketLock: "storage.buckets.lockRetentionPolicy", ops.PolicyGet: "storage.buckets.getIamPolicy",
	ops.PolicySet: "storage.buckets.setIamPolicy", ops.ServiceAccount: "storage.serviceaccount.get",
	ops.HMACInsert: "storage.hmacKey.create", ops.HMACGet: "storage.hmacKey.get", ops.HMACList: "storage.hmacKey.list",
	ops.HMACUpdate: "storage.hmacKey.update", ops.HMACDelete: "storage.hmacKey.delete",
}

// aclMethods maps the operations on access control lists to the last part of their methods.
var aclMethods = map[faults.Op]string{ops.ACLList: ".list", ops.ACLGet: ".get", ops.ACLInsert: ".insert", ops.ACLPatch: ".patch", ops.ACLDelete: ".delete"}

// aclMethod returns the method of q on an access control list.
func aclMethod(q *request) string {
	resource := "storage.bucket_acl"
	switch {
	case q.object != "":
		resource = "storage.object_acl"
	case q.rest[0] == defaultACL:
		resource = "storage.default_object_acl"
	}
	if q.op == ops.ACLPatch && q.Method == http.MethodPut {
		return resource + ".update"
	}
	return resource + aclMethods[q.op]
}

// allMethods returns the methods that a retry test can name.
func allMethods() []string {
	list := slices.AppendSeq([]string{objectUpdate, objectCopy, bucketUpdate}, maps.Values(retryMethods))
	for _, resource := range []string{"storage.bucket_acl", "storage.object_acl", "storage.default_object_acl"} {
		list = append(list, resource+".update")
		for method := range maps.Values(aclMethods) {
			list = append(list, resource+method)
		}
	}
	return list
}

// The methods that share an operation with one of retryMethods.
const (
	objectUpdate = "storage.objects.update"
	objectCopy   = "storage.objects.copy"
	bucketUpdate = "storage.buckets.update"
)

// retryMethod returns the method of the JSON API that q calls.
func retryMethod(q *request) string {
	switch {
	case aclMethods[q.op] != "":
		return aclMethod(q)
	case q.op == faults.OpPatch && q.Method == http.MethodPut:
		return objectUpdate
	case q.op == ops.BucketPatch && q.Method == http.MethodPut:
		return bucketUpdate
	case q.op == ops.Rewrite && !q.xml && q.rest[0] == "copyTo":
		return objectCopy
	}
	return retryMethods[q.op]
}

// The forms of an instruction, besides resetInstruction.
var (
	returnStatus = regexp.MustCompile(`^return-([0-9]{3})$`)
	returnAfter  = regexp.MustCompile(`^return-([0-9]{3})-after-([0-9]+)K$`)
	brokenStream = regexp.MustCompile(`^return-broken-stream(?:-after-([0-9]+)K)?$`)
	brokenFinal  = regexp.MustCompile(`^return-broken-stream-final-chunk-after-([0-9]+)B$`)
	stallAfter   = regexp.MustCompile(`^stall-for-([0-9]+)s-after-([0-9]+)K$`)
)

const resetInstruction = "return-reset-connection"

// instruction is a parsed instruction.
type instruction struct {
	do faults.Action
	// at is an offset in bytes. A request instruction is due if the request carries the
	// bytes of the object up to at or more; 0 is always due. A reply instruction is due
	// if the reply has at least that many bytes.
	at      int64
	onReply bool // it acts on the reply, not on the request
}

// fewBytes is the default number of bytes that are sent of a broken stream.
const fewBytes = 4

// parseInstruction returns the action of an instruction, and when it is due.
func parseInstruction(text string) (instruction, error) {
	var err error
	number := func(s string) int64 {
		n, convErr := strconv.ParseInt(s, 10, 32)
		if convErr != nil && err == nil {
			err = fmt.Errorf("instruction %q: %w", text, convErr)
		}
		return n
	}
	in := instruction{}
	switch {
	case text == resetInstruction:
		in.do.Effect = faults.EffectReset
	case returnStatus.MatchString(text):
		in.do = faults.Action{Effect: faults.EffectStatus, Status: int(number(returnStatus.FindStringSubmatch(text)[1]))}
	case returnAfter.MatchString(text):
		m := returnAfter.FindStringSubmatch(text)
		in.at = number(m[2]) << 10
		in.do = faults.Action{Effect: faults.EffectStatusAfter, Status: int(number(m[1])), Bytes: in.at}
	case brokenFinal.MatchString(text):
		in.do, in.onReply = faults.Action{Effect: faults.EffectTruncateReply, Bytes: number(brokenFinal.FindStringSubmatch(text)[1])}, true
	case brokenStream.MatchString(text):
		in.at, in.onReply = fewBytes, true
		if k := brokenStream.FindStringSubmatch(text)[1]; k != "" {
			in.at = number(k) << 10
		}
		in.do = faults.Action{Effect: faults.EffectCutReply, Bytes: in.at}
	case stallAfter.MatchString(text):
		m := stallAfter.FindStringSubmatch(text)
		in.at = number(m[2]) << 10
		in.do = faults.Action{Effect: faults.EffectStallBody, For: max(1, time.Duration(number(m[1]))*time.Second)} // because 0 means indefinitely
	default:
		err = fmt.Errorf("there is no instruction %q", text)
	}
	if err == nil {
		err = faults.Fault{Do: in.do}.Validate()
	}
	return in, err
}

// take consumes and returns the next action for q, or nil if none is due. It is
// called when q arrives, with a nil rep, and again with the reply. It fails if the
// test does not exist, because a mistyped id must not pass a test.
func (t *retryTests) take(q *request, rep *reply) (*faults.Action, *apiError) {
	id := q.Header.Get("X-Retry-Test-Id")
	if id == "" {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	test, method := t.find(id), retryMethod(q)
	switch {
	case test == nil:
		return nil, refuse(http.StatusNotFound, "notFound", "Retry Test %s does not exist.", id)
	case len(test.Instructions[method]) == 0:
		return nil, nil
	}
	in, err := parseInstruction(test.Instructions[method][0])
	if err != nil { // cannot happen: newRetryTest parsed all instructions
		return nil, errInternal(err)
	}
	if in.do.Effect == faults.EffectStallBody && method == retryMethods[faults.OpRead] {
		in.do.Effect, in.do.Bytes, in.onReply = faults.EffectStallReply, in.at, true
	}
	if in.onReply != (rep != nil) || rep == nil && !in.due(q) || rep != nil && !in.dueFor(q, rep) {
		return nil, nil
	}
	test.Instructions[method] = test.Instructions[method][1:]
	test.Completed = true
	for left := range maps.Values(test.Instructions) {
		test.Completed = test.Completed && len(left) == 0
	}
	return &in.do, nil
}

// due reports whether q carries the bytes of the object up to the offset of the
// instruction.
func (in *instruction) due(q *request) bool {
	switch in.do.Effect {
	case faults.EffectStatusAfter, faults.EffectStallBody:
		from, to, ok := q.dataSpan()
		if in.do.Effect == faults.EffectStallBody {
			in.do.Bytes = max(0, in.at-from)
		}
		return ok && (to < 0 || to >= in.at)
	}
	return true
}

// dueFor reports whether r, the reply to q, is long enough for the instruction. A
// listing, an error or a 308 must not consume an instruction for an object.
func (in *instruction) dueFor(q *request, r *reply) bool {
	length := r.length
	if r.stream == nil {
		length = int64(len(r.body))
	}
	if r.status/100 != 2 || q.Method == http.MethodHead {
		return false
	}
	switch in.do.Effect {
	case faults.EffectTruncateReply:
		return q.isSession() && length > 0
	case faults.EffectStallReply:
		return length < 0 || length > in.at
	}
	if length < in.at && length >= 0 {
		return false
	}
	if length == in.at { // a reply with all bytes would be complete
		in.do.Bytes = max(0, length-1)
	}
	return true
}

// find returns a test, or nil.
func (t *retryTests) find(id string) *retryTest {
	if i := t.index(id); i >= 0 {
		return t.list[i]
	}
	return nil
}

func (t *retryTests) index(id string) int {
	return slices.IndexFunc(t.list, func(test *retryTest) bool { return test.ID == id })
}

// control serves the paths /retry_test, /retry_test/ID and /retry_tests.
func (t *retryTests) control(q *request) *reply {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, single := strings.CutPrefix(q.URL.Path, "/retry_test/")
	test := t.find(id)
	switch {
	case !single && q.Method == http.MethodPost:
		test, err := newRetryTest(q)
		switch {
		case errors.Is(err, errUnsupported):
			return textReply(http.StatusNotImplemented, err.Error()+"\n")
		case err != nil:
			return textReply(http.StatusBadRequest, err.Error()+"\n")
		}
		t.list = append(t.list, test)
		return jsonReply(http.StatusOK, test)
	case !single && q.Method == http.MethodGet:
		return jsonReply(http.StatusOK, map[string]any{"retry_test": append([]*retryTest{}, t.list...)})
	case single && test == nil:
		return textReply(http.StatusNotFound, "there is no retry test "+id+"\n")
	case single && q.Method == http.MethodGet:
		return jsonReply(http.StatusOK, test)
	case single && q.Method == http.MethodDelete:
		i := t.index(id)
		t.list = slices.Delete(t.list, i, i+1)
		return jsonReply(http.StatusOK, test)
	}
	return textReply(http.StatusMethodNotAllowed, "Method Not Allowed\n")
}

// errUnsupported is the error of a test for a method or a transport that the server does not have.
// Its status is 501, for which suites skip the test, as Google's test bench answers.
var errUnsupported = errors.New("not supported")

// newRetryTest reads a test from the body of q.
func newRetryTest(q *request) (*retryTest, error) {
	body, refused := readMetadata(q.in)
	if refused != nil {
		return nil, refused
	}
	test := &retryTest{}
	if err := json.Unmarshal(body, test); err != nil {
		return nil, err
	}
	if len(test.Instructions) == 0 {
		return nil, errors.New(`give instructions, such as {"instructions": {"storage.objects.insert": ["return-503"]}}`)
	}
	test.ID, test.Completed = hex.EncodeToString(randomBytes(16)), false
	switch test.Transport = strings.ToUpper(test.Transport); test.Transport {
	case "":
		test.Transport = "HTTP"
	case "HTTP":
	default:
		return nil, fmt.Errorf("%w: only HTTP is supported, not %s", errUnsupported, test.Transport)
	}
	methods := allMethods()
	for method, list := range test.Instructions {
		if !slices.Contains(methods, method) {
			return nil, fmt.Errorf("%w: there is no method %q", errUnsupported, method)
		}
		for _, text := range list {
			if _, err := parseInstruction(text); err != nil {
				return nil, err
			}
		}
	}
	return test, nil
}
