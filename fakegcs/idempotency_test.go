package fakegcs_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// generationOf returns the generation in a reply, or of the live object if the reply has
// none.
func (w *world) generationOf(a answer, name string) string {
	w.Helper()
	if strings.HasPrefix(a.body, "{") {
		generation, _ := a.json(w.T)["generation"].(string)
		return generation
	}
	o, _ := w.gcs.Object("bkt", name)
	return fmt.Sprint(o.Generation)
}

func token(n int) string {
	return fmt.Sprintf("X-Goog-Gcs-Idempotency-Token: 00000000-0000-4000-8000-%012d", n)
}

const insertPath = "/upload/storage/v1/b/bkt/o?uploadType=media&name="

// TestRepeatedInsert checks that an insert whose reply was lost has one effect if it is repeated
// with its token. With NoIdempotencyTokens, it has two.
func TestRepeatedInsert(t *testing.T) {
	for _, none := range []bool{false, true} {
		w := newWorld(t, &fakegcs.Options{NoIdempotencyTokens: none, Faults: []faults.Fault{
			{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectLoseReply}},
		}})
		if _, err := w.try("POST", insertPath+"a", data(9), token(1)); err == nil {
			t.Fatal("the reply was not lost")
		}
		first, _ := w.gcs.Object("bkt", "a")
		for range 2 {
			a := w.do("POST", insertPath+"a", data(9), token(1))
			if got := w.generationOf(a, "a"); a.StatusCode != 200 || (got == fmt.Sprint(first.Generation)) == none {
				t.Errorf("NoIdempotencyTokens %v: %d, generation %s after %d", none, a.StatusCode, got, first.Generation)
			}
		}
		for i, r := range w.gcs.Requests() {
			if !strings.HasSuffix(token(1), r.IdempotencyToken) || r.IdempotencyToken == "" || r.Replayed != (i > 0 && !none) {
				t.Errorf("request %d has the token %q, replayed: %v", i, r.IdempotencyToken, r.Replayed)
			}
		}
	}
}

// TestExecutedAgain checks that an insert without a token, and an upload by the XML API with one, are executed again. The cases
// "token-" of package fakegcstest have the other requests.
func TestExecutedAgain(t *testing.T) {
	w := newWorld(t, nil)
	for what, do := range map[string]func(){
		"an insert without a token": func() { w.do("POST", insertPath+"a", data(9)) },
		"an upload by the XML API":  func() { w.do("PUT", "/bkt/a", data(9), token(5)) },
	} {
		do()
		first, _ := w.gcs.Object("bkt", "a")
		do()
		if again, _ := w.gcs.Object("bkt", "a"); again.Generation == first.Generation {
			t.Errorf("%s was not executed again", what)
		}
	}
}

// TestReplyKept checks for how long a reply is kept, and how many are.
func TestReplyKept(t *testing.T) {
	w := newWorld(t, nil)
	insert := func(n int) string {
		t.Helper()
		return w.generationOf(w.do("POST", insertPath+"a", nil, token(n)), "a")
	}
	first := insert(1)
	w.gcs.Advance(119 * time.Second)
	if insert(1) != first {
		t.Error("executed again after 119 s")
	}
	w.gcs.Advance(time.Second)
	second := insert(1)
	if second == first || insert(1) != second {
		t.Error("not executed again after two minutes, or executed three times")
	}
	for n := range 4095 {
		req := httptest.NewRequest("POST", insertPath+"a", http.NoBody)
		req.Header.Set("X-Goog-Gcs-Idempotency-Token", fmt.Sprint("other ", n))
		w.gcs.ServeHTTP(httptest.NewRecorder(), req)
	}
	if insert(1) != second {
		t.Error("executed again after 4,095 others")
	}
	insert(2)
	if insert(1) == second {
		t.Error("not executed again after 4,096 others")
	}
}

// TestReplyIsCopied checks that an effect on the reply to a request does not change the reply to
// its repeat.
func TestReplyIsCopied(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{
		{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectTruncateReply, Bytes: 3}},
	}})
	cut := w.do("POST", insertPath+"a&fields=generation", nil, token(1))
	whole := w.do("POST", insertPath+"a&fields=generation", nil, token(1))
	if len(cut.body) != 3 || len(whole.json(t)) != 1 {
		t.Errorf("the replies are %q and %q", cut.body, whole.body)
	}
}

// TestRepeatInMetadata checks that a repeat is recognized if only the metadata in the body has
// the name of the object.
func TestRepeatInMetadata(t *testing.T) {
	w := newWorld(t, nil)
	insert := func(name string) string {
		body := "--b\r\n\r\n" + `{"name":"` + name + `"}` + "\r\n--b\r\n\r\nbytes\r\n--b--\r\n"
		a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart", []byte(body), "Content-Type: multipart/related; boundary=b", token(1))
		return w.generationOf(a, name)
	}
	if first := insert("a"); insert("b") == first || insert("a") != first {
		t.Error("the token is not one of each object")
	}
}

// TestRepeatInBatch checks that each call of a batch has its own token.
func TestRepeatInBatch(t *testing.T) {
	w := newWorld(t, nil)
	w.do("POST", insertPath+"a", nil)
	call := func(n int, value string) string {
		return "--b\r\nContent-Type: application/http\r\n\r\nPATCH /storage/v1/b/bkt/o/a HTTP/1.1\r\nContent-Type: application/json\r\n" +
			token(n) + "\r\n\r\n" + `{"cacheControl":"` + value + `"}` + "\r\n"
	}
	w.do("POST", "/batch/storage/v1", []byte(call(1, "one")+call(2, "two")+call(1, "three")+"--b--\r\n"), "Content-Type: multipart/mixed; boundary=b")
	if o, _ := w.gcs.Object("bkt", "a"); o.CacheControl != "two" || o.Metageneration != 3 {
		t.Errorf("Cache-Control is %q, metageneration %d", o.CacheControl, o.Metageneration)
	}
}
