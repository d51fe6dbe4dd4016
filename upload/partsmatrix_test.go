package upload_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"gcsup/internal/testsize"
	"gcsup/session"
)

// This file has the cases of the matrix and their outcomes. partsmatrixrun_test.go runs a case, and
// partsmatrixlink_test.go changes the replies.

// matrixScene is a call in which the replies to one kind of request are wrong. Its file has two
// parts, of which the service stores the first one before the second one is sent.
type matrixScene struct {
	name  string // the way, a slash, and the request, with what precedes it
	act   matrixAct
	saved bool             // an interrupted call precedes: the service has part 1, and by compose half of part 2
	of    matrixRequest    // the request
	since *matrixCondition // replies are wrong after this request; nil means from the beginning
	reads bool             // the request changes nothing at the service
	large bool             // the parts do not fit in memory, so that their requests have no checksum

	written bool // another client writes the object after the first wrong reply
}

// matrixAct is the call.
type matrixAct int

const (
	actUpload  matrixAct = iota // ReaderAt
	actRestart                  // ReaderAt with Options.Restart
	actCancel                   // Cancel
	actRemove                   // Prune of an upload whose source is missing
	actPrune                    // Prune of an upload that can be resumed
)

// matrixScenes are all scenes. The way "either" is multipart or else compose, and "auto" is that of
// AutoParts.
var matrixScenes = []matrixScene{
	{name: "multipart/stat", of: matrixRequest{"stat", 0}, reads: true},
	{name: "multipart/initiate", of: matrixRequest{"initiate", 0}},
	{name: "either/initiate", of: matrixRequest{"initiate", 0}},
	{name: "auto/initiate", of: matrixRequest{"initiate", 0}},
	{name: "auto/left-session", of: matrixRequest{"cancel", 0}},
	{name: "auto/stat", of: matrixRequest{"stat", 0}, reads: true},
	{name: "multipart/part", of: matrixRequest{"part", 2}},
	{name: "multipart/streamed-part", of: matrixRequest{"part", 2}, large: true},
	{name: "multipart/list", of: matrixRequest{"list", 0}, reads: true},
	{name: "multipart/resume-list", of: matrixRequest{"list", 0}, reads: true, saved: true},
	{name: "multipart/complete", of: matrixRequest{"complete", 0}},
	{name: "multipart/complete-written", of: matrixRequest{"complete", 0}, written: true},
	{name: "multipart/lost-stat", of: matrixRequest{"stat", 0}, reads: true, since: &matrixCondition{"complete", "lost", after}},
	{name: "multipart/described-stat", of: matrixRequest{"stat", 0}, reads: true, since: &matrixCondition{"complete", "", after}},
	{name: "multipart/cancel-abort", of: matrixRequest{"abort", 0}, saved: true, act: actCancel},
	{name: "multipart/restart-abort", of: matrixRequest{"abort", 0}, saved: true, act: actRestart},
	{name: "multipart/remove-abort", of: matrixRequest{"abort", 0}, saved: true, act: actRemove},
	{name: "multipart/prune-list", of: matrixRequest{"list", 0}, reads: true, saved: true, act: actPrune},

	{name: "compose/stat", of: matrixRequest{"stat", 0}, reads: true},
	{name: "compose/bucket", of: matrixRequest{"bucket", 0}, reads: true},
	{name: "compose/permissions", of: matrixRequest{"permissions", 0}, reads: true},
	{name: "compose/notifications", of: matrixRequest{"notifications", 0}, reads: true},
	{name: "compose/start", of: matrixRequest{"start", 2}},
	{name: "compose/put", of: matrixRequest{"put", 2}},
	{name: "compose/finalize", of: matrixRequest{"finalize", 2}},
	{name: "compose/put-query", of: matrixRequest{"query", 2}, reads: true, since: &matrixCondition{"put", "lost", after}},
	{name: "compose/resume-query", of: matrixRequest{"query", 2}, reads: true, saved: true},
	{name: "compose/compose", of: matrixRequest{"compose", 0}},
	{name: "compose/compose-written", of: matrixRequest{"compose", 0}, written: true},
	{name: "compose/lost-stat", of: matrixRequest{"stat", 0}, reads: true, since: &matrixCondition{"compose", "lost", after}},
	{name: "compose/missing-stat", of: matrixRequest{"stat", 2}, reads: true, since: &matrixCondition{"compose", "404", before}},
	{name: "compose/delete", of: matrixRequest{"delete", 2}},
	{name: "compose/cancel-session", of: matrixRequest{"cancel", 2}, saved: true, act: actCancel},
	{name: "compose/cancel-delete", of: matrixRequest{"delete", 1}, saved: true, act: actCancel},
	{name: "compose/restart-session", of: matrixRequest{"cancel", 2}, saved: true, act: actRestart},
	{name: "compose/restart-delete", of: matrixRequest{"delete", 1}, saved: true, act: actRestart},
	{name: "compose/remove-delete", of: matrixRequest{"delete", 1}, saved: true, act: actRemove},
	{name: "compose/prune-query", of: matrixRequest{"query", 2}, reads: true, saved: true, act: actPrune},
}

func (s *matrixScene) way() string { return path.Dir(s.name) }

// xml reports whether the request is one of the XML API.
func (s *matrixScene) xml() bool { return s.of.xml() }

// matrixCase is a scene with one kind of wrong reply.
type matrixCase struct {
	*matrixScene
	status string // see matrixStatuses
	who    string // service, stranger or network
	when   matrixTime
	times  matrixTimes
}

// matrixTime is before if the service does not see the request, and after if it executed it.
type matrixTime string

const (
	before matrixTime = "before"
	after  matrixTime = "after"
)

// matrixTimes is how many requests in a row get the reply.
type matrixTimes string

const (
	once   matrixTimes = "once"
	twice  matrixTimes = "twice"
	always matrixTimes = "always" // until the call returns
)

func (c *matrixCase) String() string {
	return fmt.Sprintf("%s/%s/%s/%s/%s", c.name, c.status, c.who, c.when, c.times)
}

// retried reports whether the reply only means that the same request may succeed later.
func (c *matrixCase) retried() bool {
	return c.who != "service" || slices.Contains([]string{"403rate", "429", "500", "503"}, c.status)
}

// matrixStatuses are the replies. The service's own have its JSON or XML and its header. Those of a
// stranger are HTML pages.
//
//	403rate     the service's 403 because of a rate limit
//	404         of a multipart upload: NoSuchUpload
//	404bucket   NoSuchBucket
//	404key      NoSuchKey
//	400part     InvalidPart
//	200         without what the reply should have: {} or another document. A stranger's is a page
//	lost        no reply
//	wrong       a 200 that describes another object, part or list
var matrixStatuses = []string{
	"400", "400part", "401", "403", "403rate", "404", "404bucket", "404key", "409", "410", "411", "412", "413", "416", "418", "429", "499",
	"500", "501", "503", "200", "302", "lost", "wrong",
}

// exists reports whether there is such a reply.
func (c *matrixCase) exists() bool {
	kind := c.of.kind
	if c.written && c.times == always {
		return false
	}
	switch c.status {
	case "400part":
		return c.who == "service" && kind == "complete"
	case "403rate":
		return c.who == "service"
	case "404":
		return c.who == "stranger" || c.who == "service" && kind != "initiate"
	case "404bucket", "404key":
		return c.who == "service" && c.xml()
	case "302":
		return c.who == "stranger"
	case "lost":
		return c.who == "network"
	case "wrong":
		return c.who == "service" && c.times == once && slices.Contains([]string{"part", "list", "complete", "finalize", "query", "compose", "stat"}, kind)
	}
	return c.who != "network"
}

// matrixCases returns all cases, in a fixed order.
func matrixCases() (cases []*matrixCase) {
	for i := range matrixScenes {
		for _, status := range matrixStatuses {
			for _, who := range []string{"service", "stranger", "network"} {
				for _, times := range []matrixTimes{once, twice, always} {
					for _, when := range []matrixTime{before, after} {
						c := &matrixCase{&matrixScenes[i], status, who, when, times}
						if c.exists() && (when == before || !c.reads && times != always) {
							cases = append(cases, c)
						}
					}
				}
			}
		}
	}
	return cases
}

// matrixOutcome is a set of allowed outcomes of a case.
type matrixOutcome int

const (
	// done: the call succeeds. The object is right, unless the call removes the upload. Nothing else
	// is left.
	done matrixOutcome = 1 << iota

	// kept: the call fails, or leaves the upload as it is (actPrune). The saved upload stays, and all
	// that the service stored. The next call without faults does the rest, and sends nothing that was
	// stored.
	kept

	// unstored: the call fails before anything is stored.
	unstored

	// toRemove: the object is right, but something is left at the service. A Warning reports it, the
	// upload stays saved, and the next Prune removes it.
	toRemove

	// otherWay: like done, but the object was made in another way.
	otherWay

	// part2Again and allAgain allow that stored bytes of part 2, or of all parts, are sent again: the
	// service refused them, or confirmed that it does not have them.
	part2Again
	allAgain

	// orphan allows that something is left that is not saved, because the service confirmed that it
	// does not exist.
	orphan

	// unknown: the call and the next one end with ErrOutcomeUnknown, because the object at the
	// destination is that of another client. It stays, and so does what the service stored.
	unknown
)

func (o matrixOutcome) String() string {
	var names []string
	for i, name := range []string{"done", "kept", "nothing stored", "to be removed", "another way", "part 2 again", "all again", "orphan", "unknown"} {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// matrixRule gives the outcome of the cases that match it. Each field is a list of alternatives, or
// "" for all. The scene is a pattern of path.Match. The status "retried" stands for all replies after
// which the request is repeated, see matrixCase.retried.
type matrixRule struct {
	scene, status, who, when, times string

	want matrixOutcome
	kind error // of the error if the outcome is kept or unstored; nil is any except ErrPrecondition
	why  string
}

func (r *matrixRule) matches(c *matrixCase) bool {
	has := func(list, value string) bool { return list == "" || slices.Contains(strings.Fields(list), value) }
	scene := r.scene == "" || slices.ContainsFunc(strings.Fields(r.scene), func(pattern string) bool {
		ok, _ := path.Match(pattern, c.name)
		return ok
	})
	return scene && (has(r.status, c.status) || c.retried() && has(r.status, "retried")) && has(r.who, c.who) && has(r.when, string(c.when)) && has(r.times, string(c.times))
}

// Groups of scenes.
const (
	// The service stores a part, and the object does not exist.
	storing = "multipart/*part multipart/list multipart/resume-list multipart/complete multipart/lost-stat " +
		"compose/start compose/put compose/finalize compose/put-query compose/resume-query compose/compose compose/lost-stat compose/missing-stat"

	// The requests about part 2.
	aboutPart2 = "multipart/*part compose/put compose/finalize compose/put-query compose/resume-query"

	written    = "multipart/complete-written compose/compose-written"
	facts      = "compose/bucket compose/permissions compose/notifications" // about the bucket
	discarding = "*/cancel-* */remove-*"                                    // the upload is removed
	restarting = "*/restart-*"                                              // the upload is removed, and the file is sent again
)

// matrixRules are the outcomes. The first rule that matches a case counts.
var matrixRules = []matrixRule{
	{scene: written, status: "401", want: done | kept | allAgain, why: "the credentials were rejected, so that the request had no effect"},
	{scene: written, status: "429", who: "stranger", want: done | allAgain, why: "a stranger's 429 counts as the service's"},
	{scene: written, who: "stranger network", want: unknown, why: "the request may have had an effect"},
	{scene: written, status: "500 501 503 200", want: unknown, why: "the request may have had an effect"},
	{scene: written, status: "wrong", want: unknown | kept, why: "the request may have had an effect"},
	{scene: "multipart/complete-written", status: "409", want: unknown, why: "the service works on an earlier completion"},
	{scene: written, want: done | kept | allAgain | orphan, why: "the service says that the request had no effect"},

	{scene: "multipart/described-stat", want: done, why: "the reply to the completion described the object"},

	{scene: "*/initiate", status: "401", who: "stranger", times: "twice", want: done | otherWay | unstored, why: "a stranger's 401 may count as the service's"},
	{scene: storing, status: "401", who: "stranger", times: "twice", want: done | kept, why: "a stranger's 401 may count as the service's"},
	{scene: discarding, status: "401", who: "stranger", times: "twice", want: done | kept, why: "a stranger's 401 may count as the service's"},
	{scene: restarting + " compose/delete", status: "401", who: "stranger", times: "twice", want: done | kept | toRemove, why: "a stranger's 401 may count as the service's"},

	// The first request, before the service has answered.
	{scene: "*/stat", status: "404", who: "service", want: done, why: "there is no object"},
	{scene: "*/stat", status: "401", who: "service", times: "once", want: done, why: "the credentials are refreshed"},
	{scene: "*/stat", status: "401", who: "service", want: unstored, kind: session.ErrCredentials, why: "new credentials are rejected, too"},
	{scene: "*/stat", status: "429 500 503 403rate lost", times: "once twice", want: done, why: "retried"},
	{scene: "*/stat", status: "429 500 503 403rate lost", want: unstored, why: "nothing was stored"},
	{scene: "*/stat", want: done | otherWay | unstored, why: "the destination cannot be read, or the endpoint is not the service"},

	// What only describes the bucket is optional.
	{scene: facts, status: "401", who: "service", times: "once", want: done, why: "the credentials are refreshed"},
	{scene: facts, status: "retried", times: "once twice", want: done, why: "retried"},
	{scene: facts, want: done | otherWay | unstored, why: "the bucket may be unsuitable for parts"},

	{scene: "auto/left-session", want: done, why: "the session that showed a slow connection costs nothing if it is left"},

	// The start of a multipart upload.
	{scene: "*/initiate", status: "401", who: "service", times: "once", want: done, why: "the credentials are refreshed"},
	{scene: "*/initiate", status: "401", who: "service", want: unstored, kind: session.ErrCredentials, why: "new credentials are rejected, too"},
	{scene: "multipart/initiate", status: "501", who: "stranger", want: done | otherWay, why: "a gateway may have no multipart uploads"},
	{scene: "multipart/initiate", status: "400 403 404 409 410 411 412 413 416 418 499", who: "stranger", times: "twice", want: done | otherWay, why: "a proxy has no multipart uploads"},
	{scene: "multipart/initiate", status: "400 403 404 409 410 411 412 413 416 418 499", who: "stranger", times: "always", want: otherWay, why: "a proxy has no multipart uploads"},
	{scene: "multipart/initiate", status: "200 retried", times: "once twice", want: done, why: "retried"},
	{scene: "multipart/initiate", status: "403", who: "service", want: unstored, kind: session.ErrPermission, why: "nothing was stored"},
	{scene: "multipart/initiate", status: "404bucket", want: unstored, kind: session.ErrNotFound, why: "nothing was stored"},
	{scene: "multipart/initiate", status: "501", times: "once twice", want: done | unstored, why: "retried, or refused"},
	{scene: "multipart/initiate", times: "once", want: done | unstored, why: "nothing was stored"},
	{scene: "multipart/initiate", want: unstored, why: "nothing was stored"},
	{scene: "*/initiate", status: "200 429 500 503 403rate lost", times: "once twice", want: done, why: "retried"},
	{scene: "*/initiate", who: "stranger", times: "once twice", want: done | otherWay, why: "retried, or the file is sent in another way"},
	{scene: "*/initiate", status: "retried 200 404bucket 404key", want: otherWay | unstored, why: "the service is down, or there is no bucket"},
	{scene: "*/initiate", status: "501", times: "once twice", want: done | otherWay, why: "retried, or refused"},
	{scene: "*/initiate", times: "once", want: done | otherWay, why: "refused"},
	{scene: "*/initiate", want: otherWay, why: "refused"},

	// Parts are stored, and the object does not exist.
	{scene: "compose/missing-stat", status: "retried 200 401", times: "once", want: done | kept, why: "the compose was refused, and the parts exist"},
	{scene: "compose/missing-stat", status: "retried 200", times: "twice", want: done | kept, why: "the compose was refused, and the parts exist"},
	{scene: storing, status: "retried", times: "once twice", want: done, why: "retried"},
	{scene: storing, status: "retried", want: kept, why: "the retries are used up"},
	{scene: storing, status: "200", times: "once twice", want: done, why: "the reply says nothing, and counts as lost"},
	{scene: storing, status: "200", want: kept, why: "the retries are used up"},
	{scene: "multipart/*part", status: "wrong", want: done | kept | part2Again, why: "the list shows that the part differs"},
	{scene: storing, status: "wrong", want: done | kept, why: "one reply that contradicts the others"},
	{scene: storing, status: "401", times: "once", want: done, why: "the credentials are refreshed"},
	{scene: storing, status: "401", when: "before", want: kept, kind: session.ErrCredentials, why: "new credentials are rejected, too"},
	{scene: storing, status: "401", want: done | kept, kind: session.ErrCredentials, why: "new credentials are rejected, too, or a question shows the effect"},
	{scene: storing, status: "403", when: "before", want: kept, kind: session.ErrPermission, why: "the permission is missing"},
	{scene: storing, status: "403", want: done | kept, kind: session.ErrPermission, why: "the permission is missing, or a question shows the effect"},
	{scene: "multipart/*part multipart/complete compose/put compose/finalize compose/compose", when: "after", want: done, why: "a question shows the effect"},

	// The service's answer that something does not exist.
	{scene: "multipart/*part multipart/list multipart/resume-list multipart/complete", status: "404", times: "once", want: done, why: "the second answer does not confirm it"},
	{scene: "multipart/*part multipart/list multipart/resume-list multipart/complete", status: "404", want: done | kept | allAgain | orphan, why: "confirmed"},
	{scene: "multipart/lost-stat compose/lost-stat", status: "404", times: "once", want: done, why: "the second answer does not confirm it"},
	{scene: "multipart/lost-stat compose/lost-stat", status: "404", want: done | kept | allAgain, why: "confirmed"},
	{scene: "compose/put compose/finalize compose/put-query compose/resume-query", status: "404 410", times: "once", want: done, why: "the second answer does not confirm it"},
	{scene: "compose/put compose/finalize compose/put-query compose/resume-query", status: "404 410 499", times: "twice always", want: done | kept | part2Again, why: "confirmed"},
	{scene: "compose/missing-stat", status: "404", want: done | kept | part2Again, why: "the compose and the question agree"},

	{scene: "multipart/complete", status: "409", times: "once twice", want: done, why: "the service works on an earlier completion"},
	{scene: aboutPart2, want: done | kept | part2Again, why: "a refusal loses at most the refused part"},
	{scene: storing, times: "once twice", want: done | kept, why: "one refusal loses nothing"},
	{scene: storing, want: kept, why: "a permanent refusal loses nothing"},

	// The object is right.
	{scene: "compose/delete", status: "401", who: "service", times: "once", want: done, why: "the credentials are refreshed"},
	{scene: "compose/delete", status: "401", who: "service", want: toRemove, why: "new credentials are rejected, too"},
	{scene: "compose/delete", status: "retried", times: "once twice", want: done, why: "retried"},
	{scene: "compose/delete", status: "retried", want: toRemove, why: "the retries are used up"},
	{scene: "compose/delete", status: "200 404 412", want: done | toRemove | orphan, why: "the service says that it does not exist"},
	{scene: "compose/delete", times: "once twice", want: done | toRemove, why: "refused"},
	{scene: "compose/delete", want: toRemove, why: "refused"},

	// The upload is removed.
	{scene: discarding, status: "401", who: "service", times: "once", want: done, why: "the credentials are refreshed"},
	{scene: discarding, status: "401", who: "service", want: done | kept, kind: session.ErrCredentials, why: "new credentials are rejected, too"},
	{scene: discarding, status: "retried", times: "once twice", want: done, why: "retried"},
	{scene: discarding, status: "retried", want: kept, why: "the retries are used up"},
	{scene: "*/*-abort", status: "404", when: "after", want: done, why: "the upload does not exist"},
	{scene: "*/cancel-abort */remove-abort", status: "404", times: "once", want: done, why: "the second answer does not confirm it"},
	{scene: "*/cancel-abort */remove-abort", status: "404 200", want: done | kept | orphan, why: "confirmed"},
	{scene: "*/cancel-session", status: "200 404 410 499", want: done | kept, why: "a session that is left costs nothing"},
	{scene: "*/cancel-delete */remove-delete", status: "200 404 412", want: done | kept | orphan, why: "the service says that it does not exist"},
	{scene: discarding, status: "403", want: done | kept, kind: session.ErrPermission, why: "refused"},
	{scene: discarding, times: "once twice", want: done | kept, why: "refused"},
	{scene: discarding, want: kept, why: "refused"},

	// The upload is removed, and the file is sent again.
	{scene: restarting, status: "401", who: "service", times: "once", want: done, why: "the credentials are refreshed"},
	{scene: "*/restart-session", status: "retried", times: "once twice", want: done, why: "retried"},
	{scene: "*/restart-session", want: done | kept | toRemove, why: "a session that is left costs nothing"},
	{scene: restarting, status: "401", who: "service", want: kept | toRemove, kind: session.ErrCredentials, why: "new credentials are rejected, too"},
	{scene: restarting, status: "retried", times: "once twice", want: done, why: "retried"},
	{scene: restarting, status: "retried", want: kept | toRemove, why: "the retries are used up"},
	{scene: "*/restart-abort", status: "404", times: "once", want: done | kept | toRemove, why: "the second answer does not confirm it"},
	{scene: "*/restart-abort", status: "404 200", want: done | kept | toRemove | orphan, why: "confirmed"},
	{scene: "*/restart-delete", status: "200 404 412", want: done | kept | toRemove | orphan, why: "the service says that it does not exist"},
	{scene: restarting, times: "once twice", want: done | kept | toRemove, why: "refused"},
	{scene: restarting, want: kept | toRemove, why: "refused"},

	// The upload can be resumed.
	{scene: "*/prune-list", status: "404", who: "service", times: "twice always", want: done | kept | orphan, why: "confirmed"},
	{scene: "*/prune-*", want: kept, why: "Prune removes nothing that the service may have"},
}

// rule returns the rule of a case.
func (c *matrixCase) rule() *matrixRule {
	for i := range matrixRules {
		if r := &matrixRules[i]; r.matches(c) {
			if c.way() == "auto" && r.want&unstored != 0 {
				with := *r
				with.want |= kept // the session that has shown a slow connection
				return &with
			}
			return r
		}
	}
	return nil
}

// TestPartsMatrix uploads a file in parts, and gives each of its requests each wrong reply: once,
// twice in a row and always, with and without an effect at the service, and from the service and from
// a proxy. The object is right or absent, nothing stored is lost, and nothing is left that is not
// saved. The outcome of each case is that of the first of matrixRules that matches it.
//
// CI runs all cases, and go test a fixed selection. A pattern with a slash selects from all cases:
//
//	go test ./upload -run 'TestPartsMatrix/multipart/part/403$/service/before/once'
func TestPartsMatrix(t *testing.T) {
	t.Parallel()
	every := testsize.Full(1, 37)
	if testing.Short() {
		every = 331
	}
	if strings.Contains(flag.Lookup("test.run").Value.String(), "TestPartsMatrix/") {
		every = 1
	}
	var summary matrixSummary
	t.Cleanup(func() {
		t.Log(summary.String())
		for _, name := range summary.idle() {
			t.Errorf("no case of %s makes its request", name)
		}
	})
	scenes := map[string][]*matrixCase{}
	for i, c := range matrixCases() {
		if i%every == 0 {
			scenes[c.name] = append(scenes[c.name], c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(scenes)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range scenes[name] {
				t.Run(strings.TrimPrefix(c.String(), name+"/"), func(t *testing.T) {
					got := "FAILED"
					defer func() { summary.add(c, got) }()
					got = runMatrixCase(t, c)
				})
			}
		})
	}
}

// TestPartsMatrixRules checks that each case has a rule, and each rule a case, and that docs/reliability.md has
// their numbers.
func TestPartsMatrixRules(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	cases := len(matrixCases())
	for _, want := range []string{
		fmt.Sprintf("%d replies to %d kinds of requests", len(matrixStatuses), len(matrixScenes)),
		fmt.Sprintf("%d,%03d of these combinations", cases/1000, cases%1000),
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/reliability.md does not contain %q", want)
		}
	}
	used := map[*matrixRule]bool{}
	for _, c := range matrixCases() {
		r := c.rule()
		if r == nil {
			t.Errorf("%s has no rule", c)
		}
		used[r] = true
	}
	for i := range matrixRules {
		if !used[&matrixRules[i]] {
			t.Errorf("rule %d has no case: %+v", i, matrixRules[i])
		}
	}
}

// notRequested is the outcome of a case that did not make the request.
const notRequested = "not requested"

// matrixSummary counts the outcomes.
type matrixSummary struct {
	mu     sync.Mutex
	counts map[string]map[string]int // by scene and outcome
}

func (s *matrixSummary) add(c *matrixCase, got string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[string]map[string]int{}
	}
	for _, scene := range []string{c.name, "all"} {
		if s.counts[scene] == nil {
			s.counts[scene] = map[string]int{}
		}
		s.counts[scene][got]++
	}
}

// idle returns the scenes in which no case made the request.
func (s *matrixSummary) idle() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.counts)) {
		if got := s.counts[name]; len(got) == 1 && got[notRequested] > 0 {
			names = append(names, name)
		}
	}
	return names
}

func (s *matrixSummary) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	b.WriteString("outcomes:\n")
	for _, scene := range slices.Sorted(maps.Keys(s.counts)) {
		fmt.Fprintf(&b, "%-26s", scene)
		for _, got := range slices.Sorted(maps.Keys(s.counts[scene])) {
			fmt.Fprintf(&b, " %s %d,", got, s.counts[scene][got])
		}
		b.WriteString("\n")
	}
	return b.String()
}
