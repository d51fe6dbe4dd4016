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

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/strictjson"
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
	k.Kind, k.ID = "storage#hmacKeyMetadata", k.ProjectID+"/"+k.AccessID
	k.SelfLink = base + "/storage/v1/projects/" + url.PathEscape(k.ProjectID) + "/hmacKeys/" + k.AccessID
	k.Etag = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(k.version)))
	return k
}

// projects has the HMAC keys of all projects, in the order in which they were made.
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
	project := q.rest[0]
	var k hmacKey
	var err *apiError
	switch q.op {
	case faults.OpServiceAccount:
		return jsonReply(http.StatusOK, map[string]string{
			"kind": "storage#serviceAccount", "email_address": "service-" + projectNumber + "@gs-project-accounts.iam.gserviceaccount.com",
		})
	case faults.OpHMACInsert:
		account := q.query.Get("serviceAccountEmail")
		if account == "" {
			return errRequired("serviceAccountEmail").reply(false)
		}
		k := p.add(project, account, now)
		return jsonReply(http.StatusOK, map[string]any{
			"kind": "storage#hmacKey", "metadata": k.shown(q.base()), "secret": base64.StdEncoding.EncodeToString(randomBytes(30)),
		})
	case faults.OpHMACList:
		return p.answerList(q, project)
	case faults.OpHMACGet:
		k, err = p.get(project, q.rest[2])
	case faults.OpHMACUpdate:
		body, refused := readMetadata(q.in)
		if refused != nil {
			return refused.reply(false)
		}
		var given hmacKey
		if err := strictjson.Decode(body, &given); err != nil {
			return invalid("Invalid key metadata: %v", err).reply(false)
		}
		k, err = p.update(project, q.rest[2], given.State, given.Etag, now)
	case faults.OpHMACDelete:
		if err := p.delete(project, q.rest[2], now); err != nil {
			return err.reply(false)
		}
		return newReply(http.StatusNoContent)
	}
	if err != nil {
		return err.reply(false)
	}
	return jsonReply(http.StatusOK, k.shown(q.base()))
}

func (p *projects) answerList(q *request, project string) *reply {
	l, err := q.listQuery()
	if err != nil {
		return err.reply(false)
	}
	out := struct {
		Kind          string    `json:"kind"`
		NextPageToken string    `json:"nextPageToken,omitempty"`
		Items         []hmacKey `json:"items,omitempty"`
	}{Kind: "storage#hmacKeysMetadata"}
	for _, k := range p.list(project, q.query.Get("serviceAccountEmail"), q.flag("showDeletedKeys")) {
		if k.AccessID <= l.after {
			continue
		}
		if len(out.Items) == l.limit {
			out.NextPageToken = pageToken(out.Items[l.limit-1].AccessID)
			break
		}
		out.Items = append(out.Items, k.shown(q.base()))
	}
	return jsonReply(http.StatusOK, out)
}

// add makes a key. Its access ID has the length and the beginning of those of the service.
func (p *projects) add(project, account string, now time.Time) hmacKey {
	k := hmacKey{
		AccessID: ("GOOG1E" + rand.Text() + rand.Text() + rand.Text())[:61], ProjectID: project, ServiceAccountEmail: account,
		State: hmacActive, TimeCreated: timestamp{now}, Updated: timestamp{now}, version: 1,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, k)
	return k
}

// list returns the keys of a project, of one service account unless that is "", in the order
// of their access IDs.
func (p *projects) list(project, account string, deleted bool) []hmacKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []hmacKey
	for _, k := range p.keys {
		if k.ProjectID == project && (account == "" || k.ServiceAccountEmail == account) && (deleted || k.State != hmacDeleted) {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b hmacKey) int { return strings.Compare(a.AccessID, b.AccessID) })
	return list
}

func (p *projects) get(project, id string) (hmacKey, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, err := p.findLocked(project, id)
	if err != nil {
		return hmacKey{}, err
	}
	return *k, nil
}

// findLocked finds a key, also a deleted one.
func (p *projects) findLocked(project, id string) (*hmacKey, *apiError) {
	i := slices.IndexFunc(p.keys, func(k hmacKey) bool { return k.ProjectID == project && k.AccessID == id })
	if i < 0 {
		return nil, refuse(http.StatusNotFound, "notFound", "Access ID not found in project: %s", id)
	}
	return &p.keys[i], nil
}

// update activates or deactivates a key. If etag is not "", it must be that of the key.
func (p *projects) update(project, id, state, etag string, now time.Time) (hmacKey, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, err := p.findLocked(project, id)
	switch {
	case err != nil:
		return hmacKey{}, err
	case k.State == hmacDeleted:
		return hmacKey{}, invalid("The key %s is deleted.", id)
	case state != hmacActive && state != hmacInactive:
		return hmacKey{}, invalid("Invalid value for state: '%s'. It must be ACTIVE or INACTIVE.", state)
	case etag != "" && etag != k.shown("").Etag:
		return hmacKey{}, refuse(http.StatusPreconditionFailed, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
	}
	k.State, k.Updated = state, timestamp{now}
	k.version++
	return *k, nil
}

// delete deletes a key, which must be inactive.
func (p *projects) delete(project, id string, now time.Time) *apiError {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, err := p.findLocked(project, id)
	switch {
	case err != nil:
		return err
	case k.State != hmacInactive:
		return invalid("Cannot delete keys in '%s' state.", k.State)
	}
	k.State, k.Updated = hmacDeleted, timestamp{now}
	k.version++
	return nil
}
