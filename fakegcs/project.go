package fakegcs

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gcsup/fakegcs/internal/ops"
)

// HMAC keys and the service account of a project. The keys are records in memory: a
// request that is signed with one is not checked.
// https://cloud.google.com/storage/docs/json_api/v1/projects/hmacKeys

// The states of an HMAC key.
const (
	hmacActive   = "ACTIVE"
	hmacInactive = "INACTIVE"
	hmacDeleted  = "DELETED"
)

// hmacKey is the metadata of a key.
type hmacKey struct {
	Kind                string    `json:"kind"`
	ID                  string    `json:"id"`
	SelfLink            string    `json:"selfLink"`
	AccessID            string    `json:"accessId"`
	ProjectID           string    `json:"projectId"`
	ServiceAccountEmail string    `json:"serviceAccountEmail"`
	State               string    `json:"state"`
	TimeCreated         timestamp `json:"timeCreated"`
	Updated             timestamp `json:"updated"`
	Etag                string    `json:"etag"`
	version             int
}

func (k hmacKey) shown(base string) hmacKey {
	k.SelfLink = base + "/storage/v1/projects/" + url.PathEscape(k.ProjectID) + "/hmacKeys/" + k.AccessID
	return k
}

// change gives k another state.
func (k *hmacKey) change(state string, now time.Time) {
	k.version++
	k.State, k.Updated, k.Etag = state, timestamp{now}, base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(k.version)))
}

// projects has the HMAC keys of all projects, in the order of their access IDs.
type projects struct {
	mu   sync.Mutex
	keys []hmacKey
}

func (p *projects) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = nil
}

// answer processes a request for a project.
func (p *projects) answer(q *request, now time.Time) *reply {
	var given hmacKey
	if q.op == ops.HMACUpdate {
		if err := q.decode("key metadata", &given); err != nil {
			return err.reply(false)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch q.op {
	case ops.ServiceAccount:
		return jsonReply(http.StatusOK, map[string]string{
			"kind": "storage#serviceAccount", "email_address": "service-" + projectNumber + "@gs-project-accounts.iam.gserviceaccount.com",
		})
	case ops.HMACInsert:
		return p.insertLocked(q, now)
	case ops.HMACList:
		return p.listLocked(q)
	}
	i := slices.IndexFunc(p.keys, func(k hmacKey) bool { return k.ProjectID == q.rest[0] && k.AccessID == q.rest[2] })
	if i < 0 {
		return refuse(http.StatusNotFound, "notFound", "Access ID not found in project: %s", q.rest[2]).reply(false)
	}
	k := &p.keys[i]
	switch q.op {
	case ops.HMACUpdate:
		if err := k.checkUpdate(given); err != nil {
			return err.reply(false)
		}
		k.change(given.State, now)
	case ops.HMACDelete:
		if k.State != hmacInactive {
			return invalid("Cannot delete keys in '%s' state.", k.State).reply(false)
		}
		k.change(hmacDeleted, now)
		return newReply(http.StatusNoContent)
	}
	return jsonReply(http.StatusOK, k.shown(q.base()))
}

// checkUpdate returns an error if k cannot get the state that was given. If an etag was given, it must be that
// of k.
func (k *hmacKey) checkUpdate(given hmacKey) *apiError {
	switch {
	case k.State == hmacDeleted:
		return invalid("The key %s is deleted.", k.AccessID)
	case given.State != hmacActive && given.State != hmacInactive:
		return invalid("Invalid value for state: '%s'. It must be ACTIVE or INACTIVE.", given.State)
	case given.Etag != "" && given.Etag != k.Etag:
		return errCondition()
	}
	return nil
}

// insertLocked makes a key. Its access ID has the length and the beginning of those of the service.
func (p *projects) insertLocked(q *request, now time.Time) *reply {
	k := hmacKey{
		Kind: "storage#hmacKeyMetadata", AccessID: ("GOOG1E" + rand.Text() + rand.Text() + rand.Text())[:61],
		ProjectID: q.rest[0], ServiceAccountEmail: q.query.Get("serviceAccountEmail"), TimeCreated: timestamp{now},
	}
	if k.ServiceAccountEmail == "" {
		return errRequired("serviceAccountEmail").reply(false)
	}
	k.ID = k.ProjectID + "/" + k.AccessID
	k.change(hmacActive, now)
	p.keys = append(p.keys, k)
	slices.SortFunc(p.keys, func(a, b hmacKey) int { return strings.Compare(a.AccessID, b.AccessID) })
	return jsonReply(http.StatusOK, map[string]any{
		"kind": "storage#hmacKey", "metadata": k.shown(q.base()), "secret": base64.StdEncoding.EncodeToString(randomBytes(30)),
	})
}

// listLocked lists the keys of a project, or of one of its service accounts.
func (p *projects) listLocked(q *request) *reply {
	l, err := q.listQuery()
	if err != nil {
		return err.reply(false)
	}
	out := struct {
		Kind          string    `json:"kind"`
		NextPageToken string    `json:"nextPageToken,omitempty"`
		Items         []hmacKey `json:"items,omitempty"`
	}{Kind: "storage#hmacKeysMetadata"}
	account, deleted := q.query.Get("serviceAccountEmail"), q.flag("showDeletedKeys")
	for _, k := range p.keys {
		switch {
		case k.ProjectID != q.rest[0], account != "" && k.ServiceAccountEmail != account, k.State == hmacDeleted && !deleted, k.AccessID <= l.after:
		case len(out.Items) == l.limit:
			out.NextPageToken = pageToken(out.Items[l.limit-1].AccessID)
			return jsonReply(http.StatusOK, out)
		default:
			out.Items = append(out.Items, k.shown(q.base()))
		}
	}
	return jsonReply(http.StatusOK, out)
}
