#!/bin/sh
# Writes the configuration of a hub's NATS servers and of its leaf nodes, and creates missing keys.
#
#   render.sh FOLDER CLUSTER...
#
# A CLUSTER is a name, as in --cluster. With ":leaf" the cluster has a NATS of its own, which connects to the hub as a leaf node; without,
# its programs connect to the hub. To add clusters, run it again with all of them: the others do not change, and FOLDER/settings has the variables.
# Before the servers read that a cluster without ":leaf" is gone, or has ":leaf", delete its streams as CLUSTER-operator.
#
#   FOLDER/hub           for each server of the hub
#   FOLDER/CLUSTER       for the NATS of a cluster that has its own; leaf-key.conf is secret
#   FOLDER/streams       streams to declare: CLUSTER-*.json as CLUSTER-operator; fleet/*.json, then fleet.json, as fleet-operator
#   FOLDER/keys          a secret seed and a public key for each user; existing keys are kept
#   FOLDER/settings      the next three variables, for the next run without them
#
# STORES names the cluster without ":leaf" whose watcher watches the secret stores for all, as in --stores-from. Default: none, as with STORES="".
# MEMBER_MIB is what each cluster without ":leaf" may store on the hub, on its three servers together. Default: 8192.
# FLEET_MIB is the size of FLEET, on each server. It forgets the oldest events beyond that. Default: 4096.
# NK is the program that creates keys: go install github.com/nats-io/nkeys/nk@latest.
set -eu
umask 077
here=$(cd "$(dirname "$0")" && pwd)
# The size of each stream in deploy/nats/hub/intake.json.
intake_mib=64

fail() {
	echo "render.sh: $1" >&2
	exit 2
}

# setting NAME: prints a variable of the last run.
setting() { [ ! -f "$out/settings" ] || sed -n "s/^$1=//p" "$out/settings"; }

# key NAME: prints the public key of a user, and creates the user if there is none.
key() {
	[ -s "$out/keys/$1.nk" ] || "${NK:-nk}" -gen user >"$out/keys/$1.nk"
	[ -s "$out/keys/$1.pub" ] || "${NK:-nk}" -inkey "$out/keys/$1.nk" -pubout >"$out/keys/$1.pub"
	cat "$out/keys/$1.pub"
}

# fill FILE NAME: prints the file for a cluster. Replaces CLUSTER with its name, @user with the user's public key, and a line such as
# @exports with the lines of that variable. @owner is the account of the cluster's streams.
fill() {
	name=$2
	sed -e "s/CLUSTER/$name/g" -e "s/@member_mib/$member_mib/" -e "s/@account_mib/$account_mib/" -e "s/@fleet_bytes/$((fleet_mib * 1048576))/" \
		-e "s/@owner/$owner/" -e "s/@intake_bytes/$((intake_mib * 1048576))/" "$here/$1" | while IFS= read -r line; do
		case $line in
		*@exports) printf '%s' "$exports" ;;
		*@imports) printf '%s' "$imports" ;;
		*@leaf_publish) printf '%s' "$leaf_publish" ;;
		*@leaf_subscribe) printf '%s' "$leaf_subscribe" ;;
		*@sources) printf '%s' "$sources" ;;
		*"nkey: @"*)
			user=${line#*@} user=${user%%,*}
			public=$(key "$name-$user")
			printf '%s\n' "${line%%@*}$public${line#*@"$user"}" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done
}

# passages CLUSTER: sets what an account needs in addition for events about the secret stores. Requests to the domain hub that arrive over
# a leaf node are mapped before they are imported; others are not.
passages() {
	exports= imports= leaf_publish= leaf_subscribe= sources=
	[ "$stores" ] || return 0
	request="CONSUMER.CREATE.CHANGES.*.keyturn.v1.$stores.openbao.>"
	if [ "$1" = "$stores" ]; then
		exports="  { service: \"\$JS.API.$request\" }
  { stream: \"\$JS.S.>\" }
"
		for other in $clusters; do
			[ "$other" = "$stores" ] || imports="$imports  { stream: { account: \"$other\", subject: \"\$JS.FC.CHANGES.>\" } }
"
		done
		return 0
	fi
	exports="  { stream: \"\$JS.FC.CHANGES.>\", accounts: [\"$stores\"] }
"
	imports="  { service: { account: \"$stores\", subject: \"\$JS.API.$request\" }$2 }
  { stream: { account: \"$stores\", subject: \"\$JS.S.>\" } }
"
	leaf_publish="      \"\$JS.hub.API.$request\"
      \"\$JS.FC.CHANGES.>\"
"
	leaf_subscribe="      \"\$JS.S.>\"
      \"\$JSC.R.>\"
"
	sources="  \"sources\": [
    { \"name\": \"CHANGES\", \"filter_subject\": \"keyturn.v1.$stores.openbao.>\", \"external\": { \"api\": \"\$JS.hub.API\", \"deliver\": \"\" } }
  ],
"
}

# streams CLUSTER REPLICAS: writes the streams of a cluster, for its own subjects.
streams() {
	for stream in changes history deadletters; do
		sed -e "s/v1\.>/v1.$1.>/" -e "s/\"num_replicas\": 1/\"num_replicas\": $2/" "$here/$stream.json" |
			if [ "$sources" ] && [ "$stream" = changes ]; then
				while IFS= read -r line; do
					case $line in *'"retention"'*) printf '%s' "$sources" ;; esac
					printf '%s\n' "$line"
				done
			else
				cat
			fi >"$out/streams/$1-$stream.json"
	done
}

[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$1
shift
stores=${STORES-$(setting STORES)}
member_mib=${MEMBER_MIB:-$(setting MEMBER_MIB)} member_mib=${member_mib:-8192}
fleet_mib=${FLEET_MIB:-$(setting FLEET_MIB)} fleet_mib=${fleet_mib:-4096}
clusters=
for arg in "$@"; do
	cluster=${arg%:leaf}
	case $cluster in
	"" | -* | *- | *[!a-z0-9-]*) fail "cluster \"$cluster\": want lower-case letters, digits or '-', beginning and ending with a letter or digit" ;;
	esac
	# The hub has files of its own, and two more for each cluster that connects to it.
	case $arg in
	fleet | fleet:leaf | hub:leaf | keys:leaf | settings:leaf | streams:leaf) fail "cluster \"$arg\": the name is taken" ;;
	server | server:leaf | clusters | clusters:leaf | fleet-accounts | fleet-accounts:leaf) fail "cluster \"$arg\": the name is taken" ;;
	*-users | *-users:leaf | *-accounts | *-accounts:leaf)
		case " $* " in
		*" ${cluster%-*} "*) fail "cluster \"$arg\": the name is taken: hub/$cluster.conf is a file of \"${cluster%-*}\"" ;;
		esac ;;
	esac
	[ "$arg" != "$stores:leaf" ] || fail "STORES: \"$stores\" has a NATS of its own, want a cluster that connects to the hub"
	[ "$arg" != "$cluster" ] || [ ! -e "$out/$cluster/leaf-key.conf" ] ||
		fail "cluster \"$cluster\": it has a NATS of its own: want \"$cluster:leaf\", or remove $out/$cluster if that has changed"
	clusters="$clusters $cluster"
done
case "$member_mib$fleet_mib" in
*[!0-9]*) fail "MEMBER_MIB, FLEET_MIB: want whole numbers of MiB" ;;
esac
case "$clusters " in
*" $stores "*) ;;
*) [ -z "$stores" ] || fail "STORES: \"$stores\" is not one of$clusters" ;;
esac
mkdir -p "$out/keys" "$out/hub" "$out/streams/fleet"
printf 'STORES=%s\nMEMBER_MIB=%s\nFLEET_MIB=%s\n' "$stores" "$member_mib" "$fleet_mib" >"$out/settings"
# Three replicas of FLEET and of the stream of each cluster beside it, and room for what a stream holds until it has discarded older events.
account_mib=$((3 * (fleet_mib + intake_mib * $#) + 256))

cp "$here/hub/server.conf" "$out/hub/server.conf"
printf 'accounts: {\n  FLEET: { include fleet.conf }\n  include fleet-accounts.conf\n' >"$out/hub/clusters.conf"
fleet_imports= fleet_sources=
# Quote names used as values: a cluster may be called 42.
for arg in "$@"; do
	cluster=${arg%:leaf}
	owner=$cluster api='$JS.API'
	if [ "$arg" != "$cluster" ]; then
		owner=KEYTURN api="\$JS.$cluster.API"
		passages "$cluster" ""
		mkdir -p "$out/$cluster"
		fill leaf/server.conf "$cluster" >"$out/$cluster/server.conf"
		fill users.conf "$cluster" >"$out/$cluster/users.conf"
		fill accounts.conf "$cluster" >"$out/$cluster/accounts.conf"
		fill hub/spoke.conf "$cluster" >"$out/hub/$cluster.conf"
		printf 'nkey: %s\n' "$(cat "$out/keys/$cluster-leaf.nk")" >"$out/$cluster/leaf-key.conf"
		streams "$cluster" 1
	else
		passages "$cluster" ", to: \"\$JS.hub.API.CONSUMER.CREATE.CHANGES.*.keyturn.v1.$stores.openbao.>\""
		fill users.conf "$cluster" >"$out/hub/$cluster-users.conf"
		fill accounts.conf "$cluster" >"$out/hub/$cluster-accounts.conf"
		printf '  include "%s-accounts.conf"\n' "$cluster" >>"$out/hub/clusters.conf"
		fill hub/member.conf "$cluster" >"$out/hub/$cluster.conf"
		streams "$cluster" 3
	fi
	printf '  %s: { include "%s.conf" }\n' "$cluster" "$cluster" >>"$out/hub/clusters.conf"
	request="CONSUMER.CREATE.CHANGES.*.keyturn.v1.$cluster.>"
	fleet_imports="$fleet_imports  { service: { account: \"$cluster\", subject: \"$api.$request\" }, to: \"\$JS.$cluster.API.$request\" }
  { stream: { account: \"$cluster\", subject: \"keyturn.fleet.$cluster.>\" } }
"
	fleet_sources="$fleet_sources${fleet_sources:+,
}    { \"name\": \"FLEET-$cluster\", \"filter_subject\": \"keyturn.v1.$cluster.>\" }"
	fill hub/intake.json "$cluster" >"$out/streams/fleet/$cluster.json"
done
printf '}\n' >>"$out/hub/clusters.conf"
imports=$fleet_imports sources="$fleet_sources
"
fill hub/fleet.conf fleet >"$out/hub/fleet.conf"
fill hub/fleet-accounts.conf fleet >"$out/hub/fleet-accounts.conf"
fill fleet.json fleet >"$out/streams/fleet.json"
