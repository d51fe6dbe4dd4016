package fakegcs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
)

// knownParameters are the query parameters of the JSON API, of all methods that this server
// has: https://storage.googleapis.com/$discovery/rest?version=v1, and the parameters of
// every Google API.
var knownParameters = parameterSet("$.xgafv $alt access_token alt callback fields key oauth_token prettyPrint quotaUser upload_id upload_protocol uploadType userIp " +
	"contentEncoding copySourceAcl delimiter destinationKmsKeyName destinationPredefinedAcl dropContextGroups enableObjectRetention endOffset filter generation " +
	"ifGenerationMatch ifGenerationNotMatch ifMetagenerationMatch ifMetagenerationNotMatch " +
	"ifSourceGenerationMatch ifSourceGenerationNotMatch ifSourceMetagenerationMatch ifSourceMetagenerationNotMatch " +
	"includeFoldersAsPrefixes includeTrailingDelimiter allowNonEmpty kmsKeyName matchGlob maxBytesRewrittenPerCall maxResults name optionsRequestedPolicyVersion " +
	"overrideUnlockedRetention pageSize pageToken permissions recursive predefinedAcl predefinedDefaultObjectAcl prefix project projection restoreToken returnPartialSuccess " +
	"rewriteToken serviceAccountEmail showDeletedKeys softDeleted sourceGeneration startOffset userProject versions")

// missingParameters are the parameters that a method of the service has and that this
// server does not implement. To ignore them would do something else than the client wants.
var missingParameters = map[faults.Op]map[string]bool{
	faults.OpGet:       parameterSet("restoreToken"),
	faults.OpRead:      parameterSet("restoreToken"),
	faults.OpCompose:   parameterSet("dropContextGroups"),
	ops.Rewrite:        parameterSet("dropContextGroups"),
	ops.Restore:        parameterSet("copySourceAcl restoreToken"),
	ops.ACLList:        parameterSet("ifMetagenerationMatch ifMetagenerationNotMatch"),
	faults.OpBucketGet: parameterSet("generation softDeleted"),
	ops.BucketList:     parameterSet("softDeleted"),

	ops.FolderList:            parameterSet("delimiter startOffset endOffset"),
	ops.FolderGet:             parameterSet("ifMetagenerationMatch ifMetagenerationNotMatch"),
	faults.OpFolderDelete:     parameterSet("ifMetagenerationMatch ifMetagenerationNotMatch"),
	faults.OpManagedFolderGet: parameterSet("ifMetagenerationMatch ifMetagenerationNotMatch"),
	ops.ManagedFolderDelete:   parameterSet("ifMetagenerationMatch ifMetagenerationNotMatch"),
}

func parameterSet(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}

// checkParameters refuses the query parameters that this server does not implement, and logs
// each unknown one once. The service ignores unknown parameters. Their values are not
// logged, because they may be secret.
func (s *Server) checkParameters(q *request) *apiError {
	if q.xml || q.isSession() || q.op == ops.Unknown || len(q.query) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(q.query)) {
		value := q.query.Get(name)
		switch {
		case missingParameters[q.op][name] && value != "" && !isFalse(value):
			return errUnimplemented(fmt.Sprintf("the parameter '%s' of %s", name, q.kind()))
		case !knownParameters[name] && s.missing.first("parameter "+name):
			s.log.Warn("fakegcs: unknown query parameter", "parameter", name)
		}
	}
	return nil
}

func isFalse(value string) bool {
	is, err := strconv.ParseBool(value)
	return err == nil && !is
}

// flag reports whether a boolean query parameter is true. Google's Python client sends
// "True".
func (q *request) flag(name string) bool {
	is, err := strconv.ParseBool(q.query.Get(name))
	return err == nil && is
}
